"""The judge's book: schemas, tables, loader. Not here: rules, and how the wire models agree."""
