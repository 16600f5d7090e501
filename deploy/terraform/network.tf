# Who may connect to whom: the workers to the store, the proxy and the replicas; the proxy to the bank.

locals {
  # name = description
  security_groups = {
    workers     = "Workers of ${var.name}"
    store       = "Store of ${var.name}"
    proxy       = "Proxy before the source of ${var.name}"
    replicas    = "Read replicas for ${var.name}"
    store-proxy = "Proxy before the store of ${var.name}"
  }
  # from, to, port
  allowed = {
    store        = { from = aws_security_group.this["workers"].id, to = aws_security_group.this["store"].id, port = 5432 }
    proxy        = { from = aws_security_group.this["workers"].id, to = aws_security_group.this["proxy"].id, port = 3306 }
    replicas     = { from = aws_security_group.this["workers"].id, to = aws_security_group.this["replicas"].id, port = 3306 }
    source       = { from = aws_security_group.this["proxy"].id, to = var.source_security_group_id, port = 3306 }
    store-proxy  = { from = aws_security_group.this["workers"].id, to = aws_security_group.this["store-proxy"].id, port = 5432 }
    pooled-store = { from = aws_security_group.this["store-proxy"].id, to = aws_security_group.this["store"].id, port = 5432 }
  }
}

resource "aws_security_group" "this" {
  #checkov:skip=CKV2_AWS_5:Attached by key in store.tf, source.tf, workers.tf and functions.tf
  for_each    = local.security_groups
  name        = "${var.name}-${each.key}"
  description = each.value
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "this" {
  for_each                     = local.allowed
  description                  = "${each.key} of ${var.name}"
  security_group_id            = each.value.to
  referenced_security_group_id = each.value.from
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "databases" {
  for_each                     = local.allowed
  description                  = "${each.key} of ${var.name}"
  security_group_id            = each.value.from
  referenced_security_group_id = each.value.to
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "https" {
  description       = "S3, ECR, Secrets Manager, CloudWatch Logs"
  security_group_id = aws_security_group.this["workers"].id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}
