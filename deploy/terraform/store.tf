# The store: RDS PostgreSQL. It also has the table of the report (examples/nightly/warehouse.sql).

resource "aws_db_subnet_group" "this" {
  name       = var.name
  subnet_ids = var.private_subnet_ids
}

resource "aws_db_parameter_group" "store" {
  name   = "${var.name}-store"
  family = "postgres17"

  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }

  # Milliseconds; slower statements are logged.
  parameter {
    name  = "log_min_duration_statement"
    value = "1000"
  }

  parameter {
    name  = "log_statement"
    value = "ddl"
  }
}

resource "aws_db_instance" "store" {
  identifier                          = "${var.name}-store"
  engine                              = "postgres"
  engine_version                      = "17"
  instance_class                      = var.store_class
  db_name                             = "windlass"
  username                            = "windlass"
  password_wo                         = local.store_password
  password_wo_version                 = var.secrets_version
  allocated_storage                   = 20
  max_allocated_storage               = 100
  storage_type                        = "gp3"
  storage_encrypted                   = true
  kms_key_id                          = aws_kms_key.this.arn
  multi_az                            = true
  db_subnet_group_name                = aws_db_subnet_group.this.name
  vpc_security_group_ids              = [aws_security_group.this["store"].id]
  parameter_group_name                = aws_db_parameter_group.store.name
  ca_cert_identifier                  = "rds-ca-rsa2048-g1"
  publicly_accessible                 = false
  iam_database_authentication_enabled = true
  backup_retention_period             = 14
  copy_tags_to_snapshot               = true
  deletion_protection                 = true
  skip_final_snapshot                 = false
  final_snapshot_identifier           = "${var.name}-store-final"
  auto_minor_version_upgrade          = true
  performance_insights_enabled        = true
  performance_insights_kms_key_id     = aws_kms_key.this.arn
  monitoring_interval                 = 60
  monitoring_role_arn                 = aws_iam_role.monitoring.arn
  enabled_cloudwatch_logs_exports     = ["postgresql", "upgrade"]
}
