# The ledger: the progress of each chunk, its deferred items and its emitted rows. It is stored next to the data, so
# that one transaction changes both. Its partition key is the job.
#
# If Windlass may not create tables, an administrator runs this. Afterwards Windlass needs, on this table:
#   dynamodb:DescribeTable, dynamodb:GetItem, dynamodb:PutItem, dynamodb:UpdateItem,
#   dynamodb:DeleteItem, dynamodb:BatchWriteItem, dynamodb:Query, and dynamodb:Scan for `--after-restore`
# and on the tables of the job types:
#   dynamodb:DescribeTable, dynamodb:Scan, dynamodb:BatchGetItem, dynamodb:Query (their indexes too),
#   dynamodb:UpdateItem, and dynamodb:PutItem if items insert
aws dynamodb create-table --table-name windlass_ledger --billing-mode PAY_PER_REQUEST \
    --attribute-definitions AttributeName=job,AttributeType=S AttributeName=row,AttributeType=S \
    --key-schema AttributeName=job,KeyType=HASH AttributeName=row,KeyType=RANGE
