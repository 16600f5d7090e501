# What the page's commands use.

output "bucket" {
  value = aws_s3_bucket.output.id
}

output "state_machine" {
  value = aws_sfn_state_machine.night.arn
}

output "cluster" {
  value = aws_ecs_cluster.this.name
}

output "task_definition" {
  value = aws_ecs_task_definition.worker.arn
}

output "task_security_group" {
  value = aws_security_group.this["workers"].id
}
