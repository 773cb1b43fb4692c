"""Reports: outcomes merged to one value (`results`), and every form in which it is shown."""
