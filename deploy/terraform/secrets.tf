# Passwords and URLs. They are written once per secrets_version and are never in the state.

ephemeral "random_password" "store" {
  length  = 40
  special = false
}

resource "aws_secretsmanager_secret" "store_password" {
  #checkov:skip=CKV2_AWS_57:Rotation needs a function of your own; raise secrets_version to replace the password
  name       = "${var.name}/store-password"
  kms_key_id = aws_kms_key.this.arn
}

resource "aws_secretsmanager_secret_version" "store_password" {
  secret_id                = aws_secretsmanager_secret.store_password.id
  secret_string_wo         = ephemeral.random_password.store.result
  secret_string_wo_version = var.secrets_version
}

# Read back, so that an interrupted apply does not give the store another password than the URL.
ephemeral "aws_secretsmanager_secret_version" "store_password" {
  secret_id  = aws_secretsmanager_secret_version.store_password.secret_id
  version_id = aws_secretsmanager_secret_version.store_password.version_id
}

locals {
  store_password = ephemeral.aws_secretsmanager_secret_version.store_password.secret_string
  source_login   = "${var.source_user}:${urlencode(var.source_password)}"
  rds_ca         = "ssl-mode=VERIFY_IDENTITY&ssl-ca=/etc/windlass/rds-ca.pem"
  store_address  = var.functions > 0 ? "${aws_db_proxy.store[0].endpoint}:5432/windlass?sslmode=verify-full&sslrootcert=system" : "${aws_db_instance.store.endpoint}/windlass?sslmode=verify-full&sslrootcert=/etc/windlass/rds-ca.pem"
  replica_urls = {
    for index, replica in aws_db_instance.replica :
    "REPLICA_${index + 1}_URL" => "mysql://${local.source_login}@${replica.endpoint}/${var.source_database}?${local.rds_ca}"
  }
}

# What RDS Proxy signs in with.
resource "aws_secretsmanager_secret" "source_login" {
  #checkov:skip=CKV2_AWS_57:The bank's administrators rotate this user; raise secrets_version afterwards
  name       = "${var.name}/source-login"
  kms_key_id = aws_kms_key.this.arn
}

resource "aws_secretsmanager_secret_version" "source_login" {
  secret_id                = aws_secretsmanager_secret.source_login.id
  secret_string_wo         = jsonencode({ username = var.source_user, password = var.source_password })
  secret_string_wo_version = var.secrets_version
}

# The ${VAR} of windlass.toml. The proxy has a certificate that the system trusts, the instances one of RDS's own CA.
resource "aws_secretsmanager_secret" "urls" {
  #checkov:skip=CKV2_AWS_57:Contains the two passwords above
  name       = "${var.name}/urls"
  kms_key_id = aws_kms_key.this.arn
}

resource "aws_secretsmanager_secret_version" "urls" {
  secret_id                = aws_secretsmanager_secret.urls.id
  secret_string_wo_version = var.secrets_version
  secret_string_wo = jsonencode(merge(local.replica_urls, {
    SOURCE_URL    = "mysql://${local.source_login}@${aws_db_proxy.source.endpoint}:3306/${var.source_database}?ssl-mode=VERIFY_IDENTITY"
    WAREHOUSE_URL = "postgres://windlass:${local.store_password}@${local.store_address}"
  }))
}
