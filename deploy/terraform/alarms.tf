# Alarms by mail: a night that failed or was not started, and a store or replica in trouble.

resource "aws_sns_topic" "alarms" {
  name              = "${var.name}-alarms"
  kms_master_key_id = aws_kms_key.this.id
}

resource "aws_sns_topic_subscription" "mail" {
  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = var.alarm_email
}

locals {
  alarms = merge(
    {
      failed = {
        about     = "The night failed, or exceeded three hours"
        namespace = "AWS/States", metric = "ExecutionsFailed", statistic = "Sum", above = true, limit = 0
        of        = { StateMachineArn = aws_sfn_state_machine.night.arn }
      }
      missed = {
        about     = "The schedule could not start the state machine"
        namespace = "AWS/SQS", metric = "ApproximateNumberOfMessagesVisible", statistic = "Maximum", above = true, limit = 0
        of        = { QueueName = aws_sqs_queue.missed.name }
      }
      store-cpu = {
        about     = "The store is busy"
        namespace = "AWS/RDS", metric = "CPUUtilization", statistic = "Average", above = true, limit = 90
        of        = { DBInstanceIdentifier = aws_db_instance.store.identifier }
      }
      store-space = {
        about     = "The store has less than 2 GiB of free space"
        namespace = "AWS/RDS", metric = "FreeStorageSpace", statistic = "Minimum", above = false, limit = 2147483648
        of        = { DBInstanceIdentifier = aws_db_instance.store.identifier }
      }
      proxy-waits = {
        about     = "Workers wait for a connection to the bank: fewer workers, or a larger share for the proxy (microseconds)"
        namespace = "AWS/RDS", metric = "DatabaseConnectionsBorrowLatency", statistic = "Maximum", above = true, limit = 10000000
        of        = { ProxyName = aws_db_proxy.source.name }
      }
    },
    {
      for replica in aws_db_instance.replica : "${replica.identifier}-lag" => {
        about     = "A replica is more than a minute behind; workers leave it out"
        namespace = "AWS/RDS", metric = "ReplicaLag", statistic = "Minimum", above = true, limit = 60
        of        = { DBInstanceIdentifier = replica.identifier }
      }
    },
  )
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each            = local.alarms
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.about
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.of
  statistic           = each.value.statistic
  comparison_operator = each.value.above ? "GreaterThanThreshold" : "LessThanThreshold"
  threshold           = each.value.limit
  period              = 300
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
}
