# What differs between installations. The network and the bank's database exist already.

variable "name" {
  description = "Prefix of every name"
  type        = string
  default     = "nightly"
}

variable "region" {
  description = "The region of the bank's database"
  type        = string
  default     = "ap-northeast-1"
}

variable "vpc_id" {
  description = "The network of the bank's database"
  type        = string
}

variable "private_subnet_ids" {
  description = "Private subnets in at least two zones, with a route to S3, ECR, Secrets Manager and CloudWatch Logs"
  type        = list(string)
}

variable "image" {
  description = "The image with windlass.toml and the CA bundle of RDS (deploy/terraform/Dockerfile), by digest"
  type        = string
}

variable "source_db_identifier" {
  description = "The identifier of the bank's RDS MySQL instance, which needs automated backups for its replicas"
  type        = string
}

variable "source_database" {
  description = "The database in it"
  type        = string
  default     = "bank"
}

variable "source_security_group_id" {
  description = "The security group of the bank's instance; a rule for the proxy is added to it"
  type        = string
}

variable "source_user" {
  description = "A user that may read the transactions, create temporary tables and see the replication (docs/security.md)"
  type        = string
}

variable "source_password" {
  description = "Its password: TF_VAR_source_password; raise secrets_version when it changes"
  type        = string
  sensitive   = true
  ephemeral   = true
}

variable "secrets_version" {
  description = "Raise it to write the secrets again"
  type        = number
  default     = 1
}

variable "replicas" {
  description = "Read replicas of the bank; each holds all its data (examples/nightly/COST.md)"
  type        = number
  default     = 1

  validation {
    condition     = var.replicas >= 0 && var.replicas <= 15
    error_message = "RDS MySQL has at most 15 read replicas."
  }
}

variable "replica_class" {
  description = "The instance class of a replica"
  type        = string
  default     = "db.r6g.large"
}

variable "store_class" {
  description = "The instance class of the store"
  type        = string
  default     = "db.t4g.medium"
}

variable "workers" {
  description = "Worker tasks while the night's jobs run"
  type        = number
  default     = 4
}

variable "concurrency" {
  description = "Slots per worker. Each may use a connection: workers x concurrency stays below the bank's limit"
  type        = number
  default     = 8
}

variable "functions" {
  description = "Invocations of the Lambda function that work one job at the same time; 0 uses the tasks instead"
  type        = number
  default     = 0

  validation {
    condition     = var.functions >= 0 && var.functions <= 1000
    error_message = "A map of the state machine has at most 1,000 of them here."
  }
}

variable "function_image" {
  description = "With functions: the image with windlass-worker, windlass.toml and the CA bundle (Dockerfile.functions), by digest"
  type        = string
  default     = ""

  validation {
    condition     = var.functions == 0 || var.function_image != ""
    error_message = "Functions need an image."
  }
}

variable "alarm_email" {
  description = "Who gets the alarms and the notice of each night"
  type        = string
}

variable "access_log_bucket" {
  description = "A bucket for the access log of the output bucket"
  type        = string
}
