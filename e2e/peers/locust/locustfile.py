"""The request of `bare-http`, for Locust: each user has a connection of its own and never pauses."""

from locust import FastHttpUser, task


class Device(FastHttpUser):
    @task
    def post(self):
        headers = {"Content-Type": "application/octet-stream"}
        self.client.post("/telemetry/DEFAULT_TENANT/d-00000", data=b"x" * 100, headers=headers)
