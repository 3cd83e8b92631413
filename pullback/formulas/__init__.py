"""Hand-written derivative formulas, one file per family; the operator table names them."""
