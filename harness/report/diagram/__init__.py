"""A conversation drawn as a sequence diagram: as data, as Mermaid text, as SVG."""
