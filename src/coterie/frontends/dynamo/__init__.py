"""DynamoGraphDeployments: both versions of the API read into one model, its rules, and its PodCliqueSet."""
