"""Routes in the shapes of the OSMO API, so that scripts written for it keep working."""
