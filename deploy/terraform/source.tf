# The bank's database exists. Its read replicas serve `map` and `export`; the proxy pools the connections to its primary
# for planning and `reduce`. RDS Proxy has no read-only endpoint for RDS instances (only for Aurora), so the workers
# reach the replicas directly, and max_connections of windlass.toml limits them.

resource "aws_db_instance" "replica" {
  #checkov:skip=CKV_AWS_157:A replica is itself the second copy; workers leave out one that is down
  count                               = var.replicas
  identifier                          = "${var.name}-replica-${count.index + 1}"
  replicate_source_db                 = var.source_db_identifier
  instance_class                      = var.replica_class
  storage_encrypted                   = true
  vpc_security_group_ids              = [aws_security_group.this["replicas"].id]
  ca_cert_identifier                  = "rds-ca-rsa2048-g1"
  publicly_accessible                 = false
  iam_database_authentication_enabled = true
  auto_minor_version_upgrade          = true
  copy_tags_to_snapshot               = true
  deletion_protection                 = true
  skip_final_snapshot                 = true
  performance_insights_enabled        = true
  performance_insights_kms_key_id     = aws_kms_key.this.arn
  monitoring_interval                 = 60
  monitoring_role_arn                 = aws_iam_role.monitoring.arn
  enabled_cloudwatch_logs_exports     = ["error", "slowquery"]
}

resource "aws_db_proxy" "source" {
  name                   = "${var.name}-source"
  engine_family          = "MYSQL"
  require_tls            = true
  idle_client_timeout    = 900
  role_arn               = aws_iam_role.proxy.arn
  vpc_subnet_ids         = var.private_subnet_ids
  vpc_security_group_ids = [aws_security_group.this["proxy"].id]

  auth {
    auth_scheme = "SECRETS"
    iam_auth    = "DISABLED"
    secret_arn  = aws_secretsmanager_secret.source_login.arn
  }
}

resource "aws_db_proxy_default_target_group" "source" {
  db_proxy_name = aws_db_proxy.source.name

  connection_pool_config {
    max_connections_percent   = 50
    connection_borrow_timeout = 30
  }
}

resource "aws_db_proxy_target" "source" {
  db_proxy_name          = aws_db_proxy.source.name
  target_group_name      = aws_db_proxy_default_target_group.source.name
  db_instance_identifier = var.source_db_identifier
}
