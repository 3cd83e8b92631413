"""The small heart: schema, operator table, formulas, projection, levels and bind, surface, fast
path.

Read in this order: `dtype`, `schema`, `op`, `formula`, `handle`, `stack`, `tape`, `surface`,
`fast`.
"""
