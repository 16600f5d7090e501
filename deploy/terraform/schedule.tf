# 03:00 in Tokyo: EventBridge Scheduler starts the state machine with the time of the firing, which is the idempotency
# key of the night's jobs. A firing that could not be delivered is kept in a queue, and raises an alarm.

resource "aws_scheduler_schedule" "night" {
  name                         = var.name
  schedule_expression          = "cron(0 3 * * ? *)"
  schedule_expression_timezone = "Asia/Tokyo"
  kms_key_arn                  = aws_kms_key.this.arn

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_sfn_state_machine.night.arn
    role_arn = aws_iam_role.scheduler.arn
    input    = jsonencode({ time = "<aws.scheduler.scheduled-time>" })

    # Within the window of three hours.
    retry_policy {
      maximum_event_age_in_seconds = 3600
      maximum_retry_attempts       = 10
    }

    dead_letter_config {
      arn = aws_sqs_queue.missed.arn
    }
  }
}

resource "aws_sqs_queue" "missed" {
  name                      = "${var.name}-missed"
  message_retention_seconds = 1209600
  kms_master_key_id         = aws_kms_key.this.id
}

resource "aws_cloudwatch_log_group" "night" {
  name              = "/aws/vendedlogs/states/${var.name}"
  retention_in_days = 365
  kms_key_id        = aws_kms_key.this.arn
}

resource "aws_sfn_state_machine" "night" {
  name     = var.name
  role_arn = aws_iam_role.state_machine.arn

  definition = var.functions > 0 ? templatefile("${path.module}/state-machine-functions.json", {
    function = local.worker_name
    workers  = var.functions
    topic    = aws_sns_topic.alarms.arn
    }) : templatefile("${path.module}/state-machine.json", {
    cluster         = aws_ecs_cluster.this.arn
    service         = aws_ecs_service.workers.name
    task_definition = aws_ecs_task_definition.worker.arn
    subnets         = join("\", \"", var.private_subnet_ids)
    security_group  = aws_security_group.this["workers"].id
    workers         = var.workers
    concurrency     = var.concurrency
    topic           = aws_sns_topic.alarms.arn
  })

  logging_configuration {
    level                  = "ALL"
    include_execution_data = true
    log_destination        = "${aws_cloudwatch_log_group.night.arn}:*"
  }

  tracing_configuration {
    enabled = true
  }
}
