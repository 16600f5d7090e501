//! The AWS template can be deployed, has the settings that the README states, and grants each function the permissions
//! that it needs and no others.

use crate::stack::{Stack, folder, python};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

const TEMPLATE: &str = include_str!("../../aws/template.yaml");
const DATA: &str = include_str!("../../aws/data.yaml");

/// The findings of the linters, and the template as AWS expands it.
async fn examine(text: &str) -> (Vec<String>, Json) {
    let here = TempDir::new().unwrap();
    let file = here.path().join("template.yaml");
    std::fs::write(&file, text).unwrap();
    let script = folder("tests/aws/template.py");
    let parameters = ["NviTable=nvi", "OriginalsBucket=bucket"];
    let words = [script, file].map(|path| path.display().to_string()).into_iter();
    let words = words.chain(parameters.map(str::to_owned));
    let output = python(&[], words).await.ok();
    let mut examined: Json = serde_json::from_str(&output.stdout).unwrap();
    let findings = serde_json::from_value(examined["findings"].take()).unwrap();
    (findings, examined["template"].take())
}

/// The resources of the template, which must have no findings.
pub(crate) async fn resources() -> Json {
    let (findings, mut template) = examine(TEMPLATE).await;
    assert!(findings.is_empty(), "{findings:#?}");
    template["Resources"].take()
}

/// Asserts the values of these properties of a resource.
#[track_caller]
fn has(resource: &Json, fields: Json) {
    for (field, value) in fields.as_object().unwrap() {
        assert_eq!(&resource["Properties"][field], value, "{field} of {resource:#}");
    }
}

#[tokio::test]
async fn the_linters_find_nothing_in_the_templates() {
    let (findings, _) = examine(DATA).await;
    assert!(findings.is_empty(), "{findings:#?}");
    resources().await;
    // Mistakes that the linters would find.
    for (right, wrong) in [
        ("VisibilityTimeout: 300", "VisibilityTimeout: 43201"),
        ("Statistic: Minimum", "Statistic: Least"),
        ("MaximumConcurrency: !Ref MaximumConcurrency", "MaximumConcurrency: !Ref Concurrency"),
        ("    DeletionPolicy: Delete\n", ""),
        ("source: [windlass]", "source: [&name windlass, *name]"),
    ] {
        assert!(TEMPLATE.contains(right), "{right}");
        let (findings, _) = examine(&TEMPLATE.replacen(right, wrong, 1)).await;
        assert!(!findings.is_empty(), "{wrong}");
    }
}

#[tokio::test]
async fn the_queues_have_the_stated_retention_and_receive_limits() {
    let resources = resources().await;
    let work = json!({"VisibilityTimeout": 300, "MessageRetentionPeriod": 86_400,
        "RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["BatchJobDLQ", "Arn"]},
                          "maxReceiveCount": 3}});
    has(&resources["BatchJobWorkQueue"], work);
    has(&resources["BatchJobDLQ"], json!({"MessageRetentionPeriod": 14 * 86_400}));
    has(&resources["StartFailures"], json!({"MessageRetentionPeriod": 14 * 86_400}));
    for queue in ["BatchJobDLQ", "StartFailures"] {
        assert_eq!(resources[queue]["DeletionPolicy"], "Retain", "dead letters outlive the stack");
    }
}

#[tokio::test]
async fn the_functions_have_the_stated_settings_and_triggers() {
    let resources = resources().await;
    let start = &resources["StartBatchJobHandler"];
    let runs = json!({"Runtime": "provided.al2023", "Handler": "bootstrap"});
    has(start, runs.clone());
    has(start, json!({"Timeout": 900, "Role": {"Fn::GetAtt": ["StartRole", "Arn"]}}));
    let variables = &start["Properties"]["Environment"]["Variables"];
    for (name, value) in [
        ("BATCH_JOB_QUEUE_URL", "BatchJobWorkQueue"),
        ("PROCESSING_ENABLED", "LoadingEnabled"),
        ("NVI_TABLE_NAME", "NviTable"),
    ] {
        assert_eq!(variables[name], json!({"Ref": value}), "{variables:#}");
    }
    let bus = json!({"Fn::GetAtt": ["BatchJobBus", "Name"]});
    assert_eq!(variables["EVENT_BUS_NAME"], bus);
    // It invokes itself through the bus.
    let pattern = json!({"source": ["windlass"], "detail-type": ["StartBatchJob"]});
    let rule = &resources["StartBatchJobHandlerItselfAndOthers"];
    has(rule, json!({"EventBusName": bus, "EventPattern": pattern}));
    let target = json!({"Fn::GetAtt": ["StartBatchJobHandler", "Arn"]});
    assert_eq!(rule["Properties"]["Targets"][0]["Arn"], target);
    let permission = &resources["StartBatchJobHandlerItselfAndOthersPermission"];
    let by_rule = json!({"Fn::GetAtt": ["StartBatchJobHandlerItselfAndOthers", "Arn"]});
    let by = json!({"Principal": "events.amazonaws.com", "SourceArn": by_rule});
    has(permission, by);
    let failed = &resources["StartBatchJobHandlerEventInvokeConfig"]["Properties"];
    let failures = json!({"Fn::GetAtt": ["StartFailures", "Arn"]});
    assert_eq!(failed["DestinationConfig"]["OnFailure"]["Destination"], failures);

    let process = &resources["ProcessBatchJobHandler"];
    has(process, runs);
    has(process, json!({"Timeout": 60, "Role": {"Fn::GetAtt": ["ProcessRole", "Arn"]}}));
    let originals = json!({"Fn::Sub": "s3://${OriginalsBucket}/${OriginalsPrefix}"});
    let variables = &process["Properties"]["Environment"]["Variables"];
    assert_eq!(variables["ORIGINALS"], originals);
    assert_eq!(variables["BATCH_JOB_QUEUE_URL"], json!({"Ref": "BatchJobWorkQueue"}));
    assert_eq!(variables["EVENT_BUS_NAME"], bus);
    let trigger = json!({"EventSourceArn": {"Fn::GetAtt": ["BatchJobWorkQueue", "Arn"]},
        "BatchSize": {"Ref": "BatchSize"}, "MaximumBatchingWindowInSeconds": 0,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": {"Ref": "MaximumConcurrency"}}});
    has(&resources["ProcessBatchJobHandlerSQSEvent"], trigger);

    let index = &resources["IndexCandidatesHandler"];
    let url = &index["Properties"]["Environment"]["Variables"]["SEARCH_URL"];
    assert_eq!((&index["Condition"], url), (&json!("HasSearch"), &json!({"Ref": "SearchUrl"})));
    let stream = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${NviTable}/stream/\
                  ${NviStreamLabel}";
    let trigger = json!({"EventSourceArn": {"Fn::Sub": stream}, "StartingPosition": "LATEST",
        "FunctionResponseTypes": ["ReportBatchItemFailures"], "MaximumRetryAttempts": 10,
        "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["IndexFailures", "Arn"]}}}});
    has(&resources["IndexCandidatesHandlerChanges"], trigger);

    let (_, template) = examine(TEMPLATE).await;
    let size = &template["Parameters"]["BatchSize"];
    let of = (&size["Default"], &size["MinValue"], &size["MaxValue"]);
    assert_eq!(of, (&json!(5), &json!(1), &json!(10)));
}

#[tokio::test]
async fn each_function_has_the_permissions_it_needs_and_no_others() {
    let resources = resources().await;
    let table = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/";
    let start = [
        format!("dynamodb:DescribeTable {table}${{NviTable}}"),
        format!("dynamodb:GetItem {table}windlass_ledger"),
        format!("dynamodb:PutItem {table}windlass_ledger"),
        format!("dynamodb:Query {table}${{NviTable}}/index/${{NviYearIndex}}"),
        format!("dynamodb:Scan {table}${{NviTable}}"),
        format!("dynamodb:UpdateItem {table}windlass_ledger"),
        "events:PutEvents BatchJobBus".to_owned(),
        "logs:CreateLogStream StartLog".to_owned(),
        "logs:PutLogEvents StartLog".to_owned(),
        "sqs:SendMessage BatchJobWorkQueue".to_owned(),
        "sqs:SendMessage StartFailures".to_owned(),
    ];
    assert_eq!(permissions(&resources["StartRole"]), start);
    let process = [
        format!("dynamodb:BatchGetItem {table}${{NviTable}}"),
        format!("dynamodb:BatchGetItem {table}windlass_ledger"),
        format!("dynamodb:ConditionCheckItem {table}${{NviTable}}"),
        format!("dynamodb:DescribeTable {table}${{NviTable}}"),
        format!("dynamodb:GetItem {table}windlass_ledger"),
        format!("dynamodb:PutItem {table}windlass_ledger"),
        format!("dynamodb:UpdateItem {table}${{NviTable}}"),
        format!("dynamodb:UpdateItem {table}windlass_ledger"),
        "events:PutEvents BatchJobBus".to_owned(),
        "logs:CreateLogStream ProcessLog".to_owned(),
        "logs:PutLogEvents ProcessLog".to_owned(),
        "s3:GetObject arn:${AWS::Partition}:s3:::${OriginalsBucket}/${OriginalsPrefix}*".to_owned(),
        "s3:ListBucket arn:${AWS::Partition}:s3:::${OriginalsBucket}".to_owned(),
        "sqs:DeleteMessage BatchJobWorkQueue".to_owned(),
        "sqs:GetQueueAttributes BatchJobWorkQueue".to_owned(),
        "sqs:GetQueueUrl BatchJobDLQ".to_owned(),
        "sqs:ReceiveMessage BatchJobWorkQueue".to_owned(),
        "sqs:SendMessage BatchJobDLQ".to_owned(),
    ];
    assert_eq!(permissions(&resources["ProcessRole"]), process);
    let stream = format!("{table}${{NviTable}}/stream/${{NviStreamLabel}}");
    let index = [
        format!("dynamodb:DescribeStream {stream}"),
        format!("dynamodb:GetRecords {stream}"),
        format!("dynamodb:GetShardIterator {stream}"),
        format!("dynamodb:ListStreams {table}${{NviTable}}/stream/*"),
        "es:ESHttpPost arn:${AWS::Partition}:es:${AWS::Region}:${AWS::AccountId}:domain/${SearchDomain}/_bulk"
            .to_owned(),
        "logs:CreateLogStream IndexLog".to_owned(),
        "logs:PutLogEvents IndexLog".to_owned(),
        "sqs:SendMessage IndexFailures".to_owned(),
    ];
    assert_eq!(permissions(&resources["IndexRole"]), index);
    let roles = resources.as_object().unwrap().values();
    assert_eq!(roles.filter(|resource| resource["Type"] == "AWS::IAM::Role").count(), 3);
}

/// The actions that a role allows, each with its resource, in order.
pub(crate) fn permissions(role: &Json) -> Vec<String> {
    let properties = &role["Properties"];
    assert_eq!(properties["ManagedPolicyArns"], Json::Null, "no managed policies");
    let list = |one: &Json| one.as_array().cloned().unwrap_or_else(|| vec![one.clone()]);
    let mut found = Vec::new();
    for policy in properties["Policies"].as_array().unwrap() {
        for statement in list(&policy["PolicyDocument"]["Statement"]) {
            assert_eq!(statement["Effect"], "Allow", "{statement:#}");
            for resource in list(&statement["Resource"]) {
                let resource = resource["Fn::Sub"].as_str().or(resource["Fn::GetAtt"][0].as_str());
                let resource = resource.unwrap_or_else(|| panic!("{statement:#}"));
                for action in list(&statement["Action"]) {
                    found.push(format!("{} {resource}", action.as_str().unwrap()));
                }
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn queue_depth_message_age_and_dead_letters_have_alarms() {
    let resources = resources().await;
    for (alarm, queue, metric, threshold) in [
        ("DepthAlarm", "BatchJobWorkQueue", "Visible", json!({"Ref": "AlarmDepth"})),
        ("AgeAlarm", "BatchJobWorkQueue", "Age", json!({"Ref": "AlarmAge"})),
        ("DeadLetterAlarm", "BatchJobDLQ", "Visible", json!(0)),
        ("StartAlarm", "StartFailures", "Visible", json!(0)),
        ("IndexAlarm", "IndexFailures", "Visible", json!(0)),
    ] {
        let metric = match metric {
            "Age" => "ApproximateAgeOfOldestMessage",
            _ => "ApproximateNumberOfMessagesVisible",
        };
        let name = json!({"Fn::GetAtt": [queue, "QueueName"]});
        let told =
            json!({"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopic"}], {"Ref": "AWS::NoValue"}]});
        has(
            &resources[alarm],
            json!({"Namespace": "AWS/SQS", "MetricName": metric, "Threshold": threshold,
                "Dimensions": [{"Name": "QueueName", "Value": name}],
                "ComparisonOperator": "GreaterThanThreshold", "AlarmActions": told}),
        );
    }
}

#[tokio::test]
async fn work_that_waits_while_none_is_done_has_an_alarm() {
    let resources = resources().await;
    let alarm = &resources["RateAlarm"];
    has(
        alarm,
        json!({"EvaluationPeriods": 3, "Threshold": 0, "ComparisonOperator": "GreaterThanThreshold"}),
    );
    let metrics = alarm["Properties"]["Metrics"].as_array().unwrap();
    let queue =
        json!([{"Name": "QueueName", "Value": {"Fn::GetAtt": ["BatchJobWorkQueue", "QueueName"]}}]);
    for (metric, name, of) in [
        (&metrics[0], "ApproximateNumberOfMessagesVisible", "Minimum"),
        (&metrics[1], "NumberOfMessagesDeleted", "Sum"),
    ] {
        let stat = &metric["MetricStat"];
        assert_eq!((&stat["Metric"]["MetricName"], &stat["Stat"]), (&json!(name), &json!(of)));
        assert_eq!((&stat["Metric"]["Dimensions"], &stat["Period"]), (&queue, &json!(300)));
    }
    let stalled = "IF(waiting > 0 AND FILL(deleted, 0) == 0, 1, 0)";
    assert_eq!(metrics[2]["Expression"], stalled);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_template_is_created_under_the_documented_names() {
    let stack = Stack::with(1).await;
    let created = stack.resources.as_object().unwrap();
    let resources = resources().await;
    for (name, resource) in resources.as_object().unwrap() {
        // moto knows it only by its own API. Resources with a condition belong to the indexer, which is optional.
        if resource["Type"] != "AWS::Lambda::EventInvokeConfig" && resource["Condition"].is_null() {
            assert_eq!(created.get(name), Some(&resource["Type"]), "{name}: {created:#?}");
        }
    }
    for name in
        ["BatchJobWorkQueue", "BatchJobDLQ", "StartBatchJobHandler", "ProcessBatchJobHandler"]
    {
        assert!(created.contains_key(name), "{name}: {created:#?}");
    }
}
