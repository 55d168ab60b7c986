"""What can be read without starting anything: names, ports, paths and times agree with the program and each other."""

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from stream_server.config.settings import SETTINGS
from stream_server.web.routes import ROUTE_TABLE
from stream_server.web.streaming.long_poll import WAIT_SECONDS_BOUNDS
from tests.deploy.files import documents, paths, text, unknown_options, unknown_variables
from tests.docs_examples import blocks
from tests.end_to_end.server import ROOT
from tests.redis_process import free_port

GUIDE = ROOT / "docs" / "guide" / "deploying.md"
DEFAULTS: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}
LONGEST_SILENCE = max(DEFAULTS["heartbeat_seconds"], *WAIT_SECONDS_BOUNDS)
ROUTES = {row.path for row in ROUTE_TABLE}
FORWARDING = {"Forwarded", "X-Forwarded-For", "X-Real-IP"}
"""Headers in which proxies name the client. nginx passes each on that it does not set."""


@pytest.mark.parametrize(
    "path", ["systemd/stream-server.service", "systemd/stream-server.toml", "nginx/stream-server.conf"]
)
def test_the_guide_shows_the_file(path: str) -> None:
    assert text(path) in [block.text for block in blocks(GUIDE)]


def test_the_index_names_each_folder() -> None:
    shown = text("README.md")
    assert [path for path in paths("*/*") if f"]({path.partition('/')[0]})" not in shown] == []


@pytest.mark.parametrize("path", paths("systemd/*.service"))
def test_a_unit_starts_an_existing_command(path: str) -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.read_string(text(path))
    service = unit["Service"]
    assert unknown_options(service["ExecStart"].split()) == set()
    assert service["KillMode"] == "mixed"
    assert float(service["TimeoutStopSec"]) > DEFAULTS["shutdown_seconds"] + 1
    assert (service["Restart"], unit["Unit"]["StartLimitIntervalSec"]) == ("always", "0")  # it never gives up


@pytest.mark.parametrize(("path", "name"), [("stream-server", "server-1"), ("stream-server-worker", "worker")])
def test_a_unit_is_denied_what_the_container_is_denied(path: str, name: str) -> None:
    """No capabilities, no new ones, a read-only system with a temporary folder of its own, and as many processes."""
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.read_string(text(f"systemd/{path}.service"))
    service, container = unit["Service"], TestCompose.services[name]
    assert (service["CapabilityBoundingSet"], container["cap_drop"]) == ("", ["ALL"])
    assert (service["NoNewPrivileges"], container["security_opt"]) == ("yes", ["no-new-privileges:true"])
    assert (service["ProtectSystem"], container["read_only"]) == ("strict", True)
    assert (service["PrivateTmp"], container["tmpfs"]) == ("yes", ["/tmp"])
    assert int(service["TasksMax"]) == container["pids_limit"]
    assert service["MemoryMax"].lower() == container["mem_limit"]
    assert service["StateDirectory"] == "stream-server"


@pytest.mark.parametrize(("command", "is_healthy"), [("worker", True), ("serve", False)])
def test_the_health_check_of_the_image_asks_only_a_server(tmp_path: Path, command: str, *, is_healthy: bool) -> None:
    """No program listens on the port. A worker has none, and it is well as long as it runs."""
    first, copy = tmp_path / "cmdline", tmp_path / "healthcheck.py"
    first.write_text(f"/sbin/docker-init -- stream-server {command} --port 8000 ".replace(" ", "\0"))
    copy.write_text(text("image/healthcheck.py").replace("/proc/1/cmdline", str(first)))
    env = {"STREAM_SERVER_PORT": str(free_port())}
    checked = subprocess.run([sys.executable, copy], env=env, capture_output=True, text=True, check=False)
    assert (checked.returncode == 0, checked.stderr) == (is_healthy, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze on PATH")
@pytest.mark.parametrize("path", paths("systemd/*.service"))
def test_systemd_takes_the_unit(path: str, tmp_path: Path) -> None:
    """`systemd-analyze verify` finds no fault, with a program and a user that this machine has."""
    copy = tmp_path / Path(path).name
    unit = re.sub(r"^(ExecStart=)\S+", rf"\1{sys.executable}", text(path), flags=re.MULTILINE)
    copy.write_text(unit.replace("User=stream-server", "User=root"))
    found = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, check=False)
    assert [line for line in found.stderr.splitlines() if copy.name in line] == []
    broken = tmp_path / "broken.service"
    broken.write_text(unit.replace("KillMode=mixed", "KillMode=sometimes"))
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", broken], capture_output=True, text=True, check=False
    )
    assert "kill mode" in found.stderr  # the control: a wrong value is found


def test_the_settings_file_has_known_settings() -> None:
    for name, value in tomllib.loads(text("systemd/stream-server.toml")).items():
        assert type(DEFAULTS[name])(value) == value, name


def _settings_behind_a_proxy() -> list[dict[str, str]]:
    """Return the settings of servers in all files that name a trusted proxy, by name as in the settings file."""
    compose = documents("compose/compose.yaml")[0]["services"]["server-1"]["environment"]
    maps = [each["data"] for each in documents("kubernetes/server.yaml") if each["kind"] == "ConfigMap"]
    found = [
        {name.removeprefix("STREAM_SERVER_").lower(): value for name, value in each.items()}
        for each in (compose, *maps)
    ]
    return [tomllib.loads(text("systemd/stream-server.toml")), *found]


class TestCompose:
    """``compose/compose.yaml`` and its nginx."""

    compose = documents("compose/compose.yaml")[0]
    services = compose["services"]

    def test_names_refer_to_something(self) -> None:
        for name, service in self.services.items():
            assert set(service.get("depends_on", [])) <= self.services.keys(), name
            assert set(service.get("secrets", [])) <= self.compose["secrets"].keys(), name
            volumes = {volume.partition(":")[0] for volume in service.get("volumes", [])}
            assert {each for each in volumes if not each.startswith(".")} <= self.compose["volumes"].keys(), name

    def test_each_service_is_hardened(self) -> None:
        for name, service in self.services.items():
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
            assert "mem_limit" in service, name
            assert service["restart"] == "unless-stopped", name

    def test_servers_have_known_settings(self) -> None:
        for name in ("server-1", "server-2", "server-3", "worker"):
            service = self.services[name]
            assert unknown_variables(set(service["environment"])) == set()
            assert unknown_options(service["command"]) == set()
        trusted = self.services["server-1"]["environment"]["STREAM_SERVER_TRUSTED_PROXIES"]
        assert trusted == self.services["nginx"]["networks"]["default"]["ipv4_address"]

    def test_nginx_names_the_servers(self) -> None:
        named = set(re.findall(r"^    server ([\d.]+):8000;$", text("compose/nginx.conf"), re.MULTILINE))
        servers = [service for name, service in self.services.items() if name.startswith("server-")]
        assert named == {service["networks"]["default"]["ipv4_address"] for service in servers}
        assert len(named) == 3

    def test_nginx_differs_from_the_other_configuration_only_in_names(self) -> None:
        assert _without_names(text("compose/nginx.conf")) == _without_names(text("nginx/stream-server.conf"))

    def test_a_quorum_of_sentinels_survives_one(self) -> None:
        sentinels = [service for name, service in self.services.items() if name.startswith("sentinel-")]
        quorum = re.search(r"sentinel monitor core redis-1 6379 (\d)", sentinels[0]["command"][-1])
        assert quorum is not None
        assert len(sentinels) / 2 < int(quorum[1]) < len(sentinels)

    def test_the_stop_is_longer_than_the_goodbyes(self) -> None:
        seconds = float(self.services["server-1"]["stop_grace_period"].removesuffix("s"))
        assert seconds > DEFAULTS["shutdown_seconds"] + 1


class TestKubernetes:
    """The manifests of ``kubernetes/``."""

    manifests = documents(*paths("kubernetes/*.yaml"))

    def found(self, kind: str, name: str) -> Any:
        (one,) = [each for each in self.manifests if each["kind"] == kind and each["metadata"]["name"] == name]
        return one

    def test_settings_are_known(self) -> None:
        assert unknown_variables(set(self.found("ConfigMap", "stream-server")["data"])) == set()

    def test_selectors_select_the_pods(self) -> None:
        for name in ("stream-server", "stream-server-worker"):
            spec = self.found("Deployment", name)["spec"]
            assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
        labels = self.found("Deployment", "stream-server")["spec"]["template"]["metadata"]["labels"]
        assert self.found("Service", "stream-server")["spec"]["selector"] == labels
        assert self.found("PodDisruptionBudget", "stream-server")["spec"]["selector"]["matchLabels"] == labels

    @pytest.mark.parametrize("name", ["stream-server", "stream-server-worker"])
    def test_containers_are_hardened_and_start_an_existing_command(self, name: str) -> None:
        pod = self.found("Deployment", name)["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert unknown_options(container["args"]) == set()
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        assert user is not None
        context = pod["securityContext"]
        assert context["runAsNonRoot"]
        assert [context[name] for name in ("runAsUser", "runAsGroup", "fsGroup")] == [int(user[n]) for n in (1, 2, 2)]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes

    def test_probes_ask_existing_routes(self) -> None:
        (container,) = self.found("Deployment", "stream-server")["spec"]["template"]["spec"]["containers"]
        probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness", "startup")}
        assert {probe["path"] for probe in probes.values()} <= ROUTES
        assert probes["liveness"]["path"] == "/healthz"  # a server that waits for Redis must not be restarted
        assert probes["readiness"]["path"] == "/readyz"
        assert {probe["port"] for probe in probes.values()} == {container["ports"][0]["name"]}
        port = self.found("ConfigMap", "stream-server")["data"]["STREAM_SERVER_PORT"]
        assert container["ports"][0]["containerPort"] == int(port)

    def test_a_pod_has_time_for_its_goodbyes(self) -> None:
        pod = self.found("Deployment", "stream-server")["spec"]["template"]["spec"]
        wait = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
        goodbyes = float(self.found("ConfigMap", "stream-server")["data"]["STREAM_SERVER_SHUTDOWN_SECONDS"])
        assert pod["terminationGracePeriodSeconds"] > wait + goodbyes + 1

    def test_no_upgrade_and_no_maintenance_takes_all_pods(self) -> None:
        spec = self.found("Deployment", "stream-server")["spec"]
        budget = self.found("PodDisruptionBudget", "stream-server")["spec"]["maxUnavailable"]
        assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        assert budget < spec["replicas"]

    def test_the_ingress_does_not_hold_back_events(self) -> None:
        notes = self.found("Ingress", "stream-server")["metadata"]["annotations"]
        own = {name.rpartition("/")[2]: value for name, value in notes.items()}
        assert own["proxy-buffering"] == "off"
        assert float(own["proxy-read-timeout"]) > LONGEST_SILENCE


@pytest.mark.parametrize("settings", _settings_behind_a_proxy())
def test_a_server_behind_a_proxy_is_told_which_header_the_proxy_sets(settings: dict[str, str]) -> None:
    header = settings["forwarded_header"]
    for configuration in map(text, paths("*/*.conf")):
        set_anew = dict(re.findall(r"proxy_set_header (\S+) (\S+);", configuration))
        assert set_anew[header] == "$remote_addr"
        assert {name: set_anew[name] for name in FORWARDING - {header}} == dict.fromkeys(FORWARDING - {header}, '""')


@pytest.mark.parametrize("path", paths("*/*.conf"))
def test_nginx_waits_for_the_longest_poll(path: str) -> None:
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", text(path))
    assert float(seconds) > LONGEST_SILENCE


def _without_names(configuration: str) -> str:
    return re.sub(r"^    (server [\d.]+:8000|server_name \S+);\n", "", configuration, flags=re.MULTILINE)
