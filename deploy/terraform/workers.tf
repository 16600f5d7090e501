# The worker tasks, as an ECS service on Fargate. The state machine scales it from 0 and back every night, or invokes
# functions instead (functions.tf). Also for commands by hand, such as `windlass retry`.

resource "aws_ecs_cluster" "this" {
  name = var.name

  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_cloudwatch_log_group" "workers" {
  name              = "/ecs/${var.name}"
  retention_in_days = 365
  kms_key_id        = aws_kms_key.this.arn
}

locals {
  secret_names = concat(
    ["SOURCE_URL", "WAREHOUSE_URL"],
    [for index in range(var.replicas) : "REPLICA_${index + 1}_URL"],
  )
  container = {
    name                   = "windlass"
    image                  = var.image
    essential              = true
    user                   = "65532:65532"
    readonlyRootFilesystem = true
    # At SIGTERM the worker finishes its commits and hands its chunks back; Fargate waits at most two minutes.
    stopTimeout = 120
    environment = [
      { name = "AWS_REGION", value = var.region },
      { name = "OUTPUT", value = "s3://${aws_s3_bucket.output.id}" },
    ]
    secrets = [
      for name in local.secret_names :
      { name = name, valueFrom = "${aws_secretsmanager_secret.urls.arn}:${name}::" }
    ]
    linuxParameters = { initProcessEnabled = true, capabilities = { drop = ["ALL"] } }
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.workers.name
        awslogs-region        = var.region
        awslogs-stream-prefix = "windlass"
      }
    }
  }
}

resource "aws_ecs_task_definition" "worker" {
  family                   = var.name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = 2048
  memory                   = 4096
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn

  container_definitions = jsonencode([merge(local.container, {
    command = ["worker", "--concurrency", tostring(var.concurrency), "--log-format", "json"]
  })])

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = "X86_64"
  }

  # ECS reads the secret when a task starts.
  depends_on = [aws_secretsmanager_secret_version.urls]
}

resource "aws_ecs_service" "workers" {
  name            = "workers"
  cluster         = aws_ecs_cluster.this.id
  task_definition = aws_ecs_task_definition.worker.arn
  launch_type     = "FARGATE"
  desired_count   = 0

  network_configuration {
    subnets          = var.private_subnet_ids
    security_groups  = [aws_security_group.this["workers"].id]
    assign_public_ip = false
  }

  lifecycle {
    # The state machine sets it.
    ignore_changes = [desired_count]
  }
}
