"""The JSON Schemas of the documents that ``--json`` prints, computed from the records behind the documents."""
