# Instead of tasks (var.functions > 0): a Lambda function that works chunks. The state machine invokes it many times at
# once for each job. A proxy pools the connections of the functions to the store.

locals {
  functions   = var.functions > 0 ? 1 : 0
  worker_name = "${var.name}-worker"
  # Submit, status and the workers of two jobs.
  concurrent_functions = 2 * var.functions + 2
}

resource "aws_cloudwatch_log_group" "functions" {
  count             = local.functions
  name              = "/aws/lambda/${local.worker_name}"
  retention_in_days = 365
  kms_key_id        = aws_kms_key.this.arn
}

resource "aws_lambda_function" "worker" {
  #checkov:skip=CKV_AWS_116:Only the state machine invokes it, and handles its failures
  #checkov:skip=CKV_AWS_272:Lambda verifies no signatures of images; they are pinned by digest
  count                          = local.functions
  function_name                  = local.worker_name
  description                    = "Works chunks of a job of Windlass until its time is short"
  role                           = aws_iam_role.function[0].arn
  package_type                   = "Image"
  image_uri                      = var.function_image
  architectures                  = ["x86_64"]
  memory_size                    = 1024
  timeout                        = 900
  reserved_concurrent_executions = local.concurrent_functions
  kms_key_arn                    = aws_kms_key.this.arn

  environment {
    variables = {
      OUTPUT          = "s3://${aws_s3_bucket.output.id}"
      WINDLASS_SECRET = aws_secretsmanager_secret.urls.arn
    }
  }

  vpc_config {
    subnet_ids         = var.private_subnet_ids
    security_group_ids = [aws_security_group.this["workers"].id]
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.functions[0].name
  }

  tracing_config {
    mode = "Active"
  }

  # The function reads the secret when it starts.
  depends_on = [aws_secretsmanager_secret_version.urls, aws_iam_role_policy.function]
}

resource "aws_iam_role" "function" {
  count              = local.functions
  name               = "${var.name}-function"
  assume_role_policy = data.aws_iam_policy_document.assume["function"].json
}

# Network interfaces and the log.
resource "aws_iam_role_policy_attachment" "function" {
  count      = local.functions
  role       = aws_iam_role.function[0].name
  policy_arn = "arn:${local.partition}:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole"
}

data "aws_iam_policy_document" "function" {
  # What tasks may do with the output, and read the secret themselves.
  source_policy_documents = [data.aws_iam_policy_document.task.json, data.aws_iam_policy_document.execution.json]

  statement {
    actions   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
    resources = ["*"]
  }
}

resource "aws_iam_role_policy" "function" {
  count  = local.functions
  name   = "worker"
  role   = aws_iam_role.function[0].id
  policy = data.aws_iam_policy_document.function.json
}

# A distributed map starts executions of its own state machine.
data "aws_iam_policy_document" "invoke" {
  statement {
    actions   = ["lambda:InvokeFunction"]
    resources = ["arn:${local.partition}:lambda:${var.region}:${local.account}:function:${local.worker_name}"]
  }

  statement {
    actions   = ["states:StartExecution"]
    resources = ["arn:${local.partition}:states:${var.region}:${local.account}:stateMachine:${var.name}"]
  }

  statement {
    actions   = ["states:DescribeExecution", "states:StopExecution"]
    resources = ["arn:${local.partition}:states:${var.region}:${local.account}:execution:${var.name}/*"]
  }
}

resource "aws_iam_role_policy" "invoke" {
  count  = local.functions
  name   = "functions"
  role   = aws_iam_role.state_machine.id
  policy = data.aws_iam_policy_document.invoke.json
}

# What the proxy of the store signs in with.
resource "aws_secretsmanager_secret" "store_login" {
  #checkov:skip=CKV2_AWS_57:Contains the password of the store; raise secrets_version to replace both
  count      = local.functions
  name       = "${var.name}/store-login"
  kms_key_id = aws_kms_key.this.arn
}

resource "aws_secretsmanager_secret_version" "store_login" {
  count                    = local.functions
  secret_id                = aws_secretsmanager_secret.store_login[0].id
  secret_string_wo         = jsonencode({ username = "windlass", password = local.store_password })
  secret_string_wo_version = var.secrets_version
}

data "aws_iam_policy_document" "store_login" {
  statement {
    actions   = ["secretsmanager:GetSecretValue"]
    resources = aws_secretsmanager_secret.store_login[*].arn
  }
}

resource "aws_iam_role_policy" "store_login" {
  count  = local.functions
  name   = "store-login"
  role   = aws_iam_role.proxy.id
  policy = data.aws_iam_policy_document.store_login.json
}

resource "aws_db_proxy" "store" {
  count                  = local.functions
  name                   = "${var.name}-store"
  engine_family          = "POSTGRESQL"
  require_tls            = true
  idle_client_timeout    = 900
  role_arn               = aws_iam_role.proxy.arn
  vpc_subnet_ids         = var.private_subnet_ids
  vpc_security_group_ids = [aws_security_group.this["store-proxy"].id]

  auth {
    auth_scheme = "SECRETS"
    iam_auth    = "DISABLED"
    secret_arn  = aws_secretsmanager_secret.store_login[0].arn
  }
}

resource "aws_db_proxy_default_target_group" "store" {
  count         = local.functions
  db_proxy_name = aws_db_proxy.store[0].name

  connection_pool_config {
    max_connections_percent   = 90
    connection_borrow_timeout = 30
  }
}

resource "aws_db_proxy_target" "store" {
  count                  = local.functions
  db_proxy_name          = aws_db_proxy.store[0].name
  target_group_name      = aws_db_proxy_default_target_group.store[0].name
  db_instance_identifier = aws_db_instance.store.identifier
}
