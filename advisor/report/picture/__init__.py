"""The host as a person would draw it: each NUMA node with its CPUs, memory, links, drives, arrays and services.

`content` decides what there is to draw, from facts and findings; `drawing` decides where it goes, in pixels; the
templates ``host.svg.j2`` and ``host.html.j2`` draw it, and `text` draws the same content for a terminal.
"""
