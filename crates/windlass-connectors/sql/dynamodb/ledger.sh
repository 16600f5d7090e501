# The ledger: how far each chunk is committed, the items that the cursor has passed but that are not
# done, and the rows that items emitted. One table beside those it speaks of, so that one transaction
# changes both; its partition is the job.
#
# Who may not create tables has this run by somebody who may, and needs afterwards, on this table:
#   dynamodb:DescribeTable, dynamodb:GetItem, dynamodb:PutItem, dynamodb:UpdateItem,
#   dynamodb:DeleteItem, dynamodb:BatchWriteItem, dynamodb:Query, and dynamodb:Scan for `--after-restore`
# and on the tables of the job types:
#   dynamodb:DescribeTable, dynamodb:Scan, dynamodb:BatchGetItem, dynamodb:Query (their indexes too),
#   dynamodb:UpdateItem, and dynamodb:PutItem where items insert
aws dynamodb create-table --table-name windlass_ledger --billing-mode PAY_PER_REQUEST \
    --attribute-definitions AttributeName=job,AttributeType=S AttributeName=row,AttributeType=S \
    --key-schema AttributeName=job,KeyType=HASH AttributeName=row,KeyType=RANGE
