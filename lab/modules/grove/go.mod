module coterie.dev/lab/grove

go 1.26.3

require github.com/ai-dynamo/grove/operator/api v0.1.0-alpha.12-rc1
