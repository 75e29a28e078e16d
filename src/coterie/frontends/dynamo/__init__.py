"""DynamoGraphDeployments: one model for both versions of the API, its rules, and its PodCliqueSet."""
