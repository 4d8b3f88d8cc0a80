-- The request of `bare-http`, for wrk.
wrk.method = "POST"
wrk.path = "/telemetry/DEFAULT_TENANT/d-00000"
wrk.body = string.rep("x", 100)
wrk.headers["Content-Type"] = "application/octet-stream"
