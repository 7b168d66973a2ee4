"""What a person or a program sees: text for the terminal, JSON documents, later HTML and SVG."""

from __future__ import annotations
