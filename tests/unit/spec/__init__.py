"""The judge's book: schemas, tables, loader."""
