"""Reads a Parquet file and prints what is in it as JSON, values as Python writes them."""

import json
import sys

import pyarrow.compute as compute
import pyarrow.parquet as parquet

file = parquet.ParquetFile(sys.argv[1])
table = file.read()
few = table.to_pylist() if table.num_rows < 100 else []
print(
    json.dumps(
        {
            "schema": [[f.name, str(f.type), f.nullable] for f in table.schema],
            "rows": [[None if v is None else str(v) for v in row.values()] for row in few],
            "count": table.num_rows,
            "groups": file.metadata.num_row_groups,
            "codec": file.metadata.row_group(0).column(0).compression,
            "sum": str(compute.sum(table["amount"]).as_py()),
        }
    )
)
