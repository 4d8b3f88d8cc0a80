#!/usr/bin/env python3
"""ThingsBoard's own published clients, and Paho devices, against a server end; nothing of Muster's.

thingsboard_clients.py calls CLIENT URL MQTT_PORT PASSWORD: logs in, creates devices, reads what they sent, commands
one, moves rule chains; prints as JSON what came of each. CLIENT is `ce` (tb-ce-client) or `rest` (tb-rest-client).
thingsboard_clients.py create URL PASSWORD FILE: creates devices until the server is gone, and writes a line for each
that was answered: its name and its id.
thingsboard_clients.py read URL PASSWORD FILE: reads those devices; prints as JSON how many are as they were.
thingsboard_clients.py send URL MQTT_PORT PASSWORD: a device sends points; prints how many are stored once all are.
thingsboard_clients.py stored URL PASSWORD: prints how many points that device has."""

import importlib
import json
import sys
import threading
import time

import paho.mqtt.client as mqtt
import tb_ce_client
import tb_ce_client.client
import tb_rest_client.rest_client

USER = "tenant@thingsboard.org"
PATIENCE = 20
POINTS = 200
LAST = 10**13
NOBODY = "13814000-1dd2-11b2-8080-808080808080"
NODE = "org.thingsboard.rule.engine."


def ce(url, password):
    return tb_ce_client.client.ThingsboardClient(url, USER, password)


def rest(url, password):
    client = tb_rest_client.rest_client.RestClient(url)
    client.login(USER, password)
    return client


def status(call, *arguments, **named):
    """The status of a call that is refused; 200 if it is not."""
    try:
        call(*arguments, **named)
    except Exception as refused:  # Each client has exceptions of its own.
        return getattr(refused, "status", None) or repr(refused)
    return 200


def until(ready):
    give_up = time.monotonic() + PATIENCE
    while not (result := ready()):
        assert time.monotonic() < give_up, "it never came"
        time.sleep(0.05)
    return result


def device(port, token):
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.username_pw_set(token)
    granted = threading.Event()
    client.on_subscribe = lambda *_: granted.set()
    client.on_connect = lambda *_: client.subscribe("v1/devices/me/rpc/request/+", 1)
    client.connect("127.0.0.1", port)
    client.loop_start()
    assert granted.wait(PATIENCE), "no subscription"
    return client


def send(client, points):
    for ts in range(1, points + 1):
        body = json.dumps({"ts": ts, "values": {"n": ts, "on": True}})
        client.publish("v1/devices/me/telemetry", body, 1).wait_for_publish(PATIENCE)


def plain(series):
    return {key: [[point.ts, point.value] for point in points] for key, points in series.items()}


def history(client, id, end, **named):
    read = client.telemetry_controller.get_timeseries_history
    return plain(read("DEVICE", id, start_ts=0, end_ts=end, keys="n", **named))


def devices(client, models, done):
    api = client.device_controller
    made = api.save_device(models.Device(name="d", type="default"), access_token="secret")
    id = str(made.id.id)
    done["created"] = [made.name, made.type]
    done["token"] = api.get_device_credentials_by_device_id(id).credentials_id
    done["created again"] = status(api.save_device, models.Device(name="d", type="default"))
    columns = [models.ColumnMapping(type=kind) for kind in ("NAME", "TYPE", "ACCESS_TOKEN")]
    mapping = models.Mapping(columns=columns, delimiter=",", header=True, update=False)
    file = "name,type,token\n" + "".join(f"b{at},meter,t{at}\n" for at in range(20))
    result = api.process_devices_bulk_import(models.BulkImportRequest(file=file, mapping=mapping))
    done["imported"] = [result.created, result.updated, result.errors]
    page = api.get_tenant_devices(page_size=15, page=1)
    done["second page"] = [len(page.data), page.total_elements, page.has_next]
    done["found by name"] = str(api.get_tenant_device_by_name("b7").name)
    other = str(api.get_tenant_device_by_name("b8").id.id)
    api.delete_device(other)
    done["deleted again"] = status(api.delete_device, other)
    return id


def series(client, id, port, done):
    meter = device(port, "secret")
    send(meter, 5)
    latest = client.telemetry_controller.get_latest_timeseries
    until(lambda: len(history(client, id, LAST).get("n", [])) == 5)
    done["latest"] = plain(latest("DEVICE", id))
    done["latest, strict"] = plain(latest("DEVICE", id, keys="n", use_strict_data_types=True))
    done["history"] = history(client, id, 5, order_by="ASC", use_strict_data_types=True)
    done["newest"] = history(client, id, LAST, limit="1")
    done["counted"] = history(client, id, 10, agg="COUNT", interval=10, use_strict_data_types=True)
    return meter


def commands(client, id, meter, done):
    def on_message(_client, _userdata, message):
        number = message.topic.rsplit("/", 1)[1]
        done["command"] = json.loads(message.payload)
        meter.publish(f"v1/devices/me/rpc/response/{number}", '{"on":true}', 1)

    meter.on_message = on_message
    call = json.dumps({"method": "setGpio", "params": {"pin": 7}})
    api = client.rpc_v2_controller
    # One client gives it back as it reads JSON, the other as text of that.
    done["replied"] = str(api.handle_two_way_device_rpc_request_v2(device_id=id, body=call))
    done["one-way"] = status(api.handle_one_way_device_rpc_request_v2, device_id=id, body=call)
    done["to nobody"] = status(api.handle_two_way_device_rpc_request_v2, device_id=NOBODY, body=call)


def chains(client, models, done):
    api = client.rule_chain_controller
    root = next(chain for chain in api.get_rule_chains(page_size=10, page=0).data if chain.root)
    exported = api.export_rule_chains(limit=10)
    again = api.import_rule_chains(exported)
    done["imported as it was"] = [result.error.split(":")[0] for result in again]
    chain, metadata = exported.rule_chains[0], exported.metadata[0]
    chain.name, chain.version, metadata.version = "counting", None, None
    count = {"telemetryPrefix": "perf", "interval": 1}
    metadata.nodes.append(models.RuleNode(type=NODE + "action.TbMsgCountNode", name="count", configuration=count))
    to_count = models.NodeConnectionInfo(from_index=1, to_index=len(metadata.nodes) - 1, type="Success")
    metadata.connections.append(to_count)
    (result,) = api.import_rule_chains(exported)
    id = str(result.rule_chain_id.id)
    done["imported chain"] = [result.rule_chain_name, result.updated, result.error]
    read = api.get_rule_chain_meta_data(id)
    done["its nodes"] = [node.type.rsplit(".", 1)[1] for node in read.nodes]
    done["made root"] = api.set_root_rule_chain(id).root
    done["deleted as root"] = status(api.delete_rule_chain, id)
    done["put back"] = api.set_root_rule_chain(str(root.id.id)).name
    done["deleted"] = status(api.delete_rule_chain, id)


def calls(kind, url, port, password):
    client, package = {"ce": (ce, "tb_ce_client"), "rest": (rest, "tb_rest_client")}[kind]
    client, models = client(url, password), importlib.import_module(f"{package}.models")
    done = {"authority": str(client.auth_controller.get_user().authority).rsplit(".", 1)[-1]}
    id = devices(client, models, done)
    meter = series(client, id, int(port), done)
    commands(client, id, meter, done)
    chains(client, models, done)
    client.auth_controller.logout()
    done["after logout"] = status(client.auth_controller.get_user)
    meter.disconnect()
    print(json.dumps(done))


def create(url, password, file):
    client, models = ce(url, password), tb_ce_client.models
    with open(file, "w", encoding="utf-8", buffering=1) as answered:
        for at in range(10**6):
            try:
                made = client.save_device(models.Device(name=f"k{at}", type="default"), access_token=f"k{at}")
            except Exception:  # The server is gone.
                return
            answered.write(f"{made.name} {made.id.id}\n")


def read(url, password, file):
    client = ce(url, password)
    with open(file, encoding="utf-8") as lines:
        answered = [line.split() for line in lines]
    kept = 0
    for name, id in answered:
        token = client.get_device_credentials_by_device_id(id).credentials_id
        kept += client.get_device_by_id(id).name == name and token == name
    page = client.get_tenant_devices(page_size=1, page=0, text_search="k")
    print(json.dumps({"answered": len(answered), "kept": kept, "more": page.total_elements - len(answered)}))


def stored(client):
    id = str(client.get_tenant_device_by_name("sender").id.id)
    return len(history(client, id, LAST, limit="100000").get("n", []))


def send_and_wait(url, port, password):
    client = ce(url, password)
    client.save_device(tb_ce_client.models.Device(name="sender", type="default"), access_token="sender")
    sender = device(int(port), "sender")
    send(sender, POINTS)
    until(lambda: stored(client) == POINTS)
    print(POINTS)


MODES = {
    "calls": calls,
    "create": create,
    "read": read,
    "send": send_and_wait,
    "stored": lambda url, password: print(stored(ce(url, password))),
}

if __name__ == "__main__":
    MODES[sys.argv[1]](*sys.argv[2:])
