"""Pictures of a proof, laid out in Python and drawn by ``templates/charts.svg.j2``; no plotting library.

Across, a picture is as wide as the page lets it be, so ``x`` is a percentage of its width; down, ``y`` is in CSS
pixels. Letters keep their size on a phone and on paper alike. What fits at `MIN_WIDTH` pixels fits at every width
above it.
"""
