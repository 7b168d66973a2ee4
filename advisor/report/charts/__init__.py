"""Pictures of a proof, laid out in Python and drawn by ``templates/charts.svg.j2``; no plotting library."""
