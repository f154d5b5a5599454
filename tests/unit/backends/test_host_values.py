"""The host as plain values, from trees written out of a few facts; what is unreadable is null, with a note."""

from __future__ import annotations

from pathlib import Path

from cpulens.backends import host, variables
from cpulens.backends.variables import relevant


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def two_packages(root: Path) -> None:
    """Two packages, a node each, of 2 cores × 2 threads (siblings i and i+4), and a third node of memory only."""
    files = {
        "sys/devices/system/cpu/online": "0-7",
        "sys/devices/system/cpu/isolated": "7",
        "sys/devices/system/node/online": "0-2",
        "sys/devices/system/node/has_memory": "0-2",
        "proc/self/status": "Cpus_allowed_list:\t0-1,4\nMems_allowed_list:\t0\n",
        "proc/self/cgroup": "0::/job\n",
        "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
    }
    for cpu in range(8):
        core, package = cpu % 4, (cpu % 4) // 2
        base = f"sys/devices/system/cpu/cpu{cpu}"
        files[f"{base}/topology/core_cpus_list"] = f"{core},{core + 4}"
        files[f"{base}/topology/physical_package_id"] = str(package)
        files[f"{base}/cache/index3/level"] = "3"
        files[f"{base}/cache/index3/shared_cpu_list"] = "0-1,4-5" if package == 0 else "2-3,6-7"
        files[f"{base}/cpufreq/scaling_governor"] = "powersave" if cpu == 3 else "performance"
    for node, cpus in enumerate(("0-1,4-5", "2-3,6-7", "")):
        files[f"sys/devices/system/node/node{node}/cpulist"] = cpus
        files[f"sys/devices/system/node/node{node}/meminfo"] = f"Node {node} MemTotal:  {(node + 1) << 20} kB"
        files[f"sys/devices/system/node/node{node}/distance"] = "10 20 30"
    write(root, files)


def test_machine_of_two_packages(tmp_path: Path) -> None:
    two_packages(tmp_path)
    machine = host.machine(str(tmp_path))
    assert machine["cpus_online"] == "0-7" and machine["cpus_isolated"] == "7"
    assert (machine["packages"], machine["cores"], machine["threads_per_core"]) == (2, 4, 2)
    assert (machine["cpus_allowed"], machine["memory_nodes_allowed"], machine["quota_cpus"]) == ("0-1,4", "0", 1.5)
    assert [(node["node"], node["cpus"], node["memory_bytes"]) for node in machine["nodes"]] == [
        (0, "0-1,4-5", 1 << 30),
        (1, "2-3,6-7", 2 << 30),
        (2, "", 3 << 30),
    ]
    assert [(group["package"], group["node"], group["l3"], group["cores"]) for group in machine["groups"]] == [
        (0, 0, 0, ["0+4", "1+5"]),
        (1, 1, 2, ["2+6", "3+7"]),
    ]
    assert machine["notes"] == []


def test_machine_that_shows_nothing(tmp_path: Path) -> None:
    machine = host.machine(str(tmp_path))
    assert machine["cpus_online"] is None and machine["nodes"] == machine["groups"] == []
    assert machine["cpus_allowed"] is None and machine["quota_cpus"] is None
    (note,) = machine["notes"]
    assert "lists no CPU" in note
    assert set(host.tuning(str(tmp_path)).values()) == {None}


def test_tuning(tmp_path: Path) -> None:
    two_packages(tmp_path)
    write(
        tmp_path,
        {
            "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            "proc/sys/kernel/numa_balancing": "1",
            "proc/sys/vm/nr_hugepages": "512",
            "sys/devices/system/cpu/smt/active": "1",
            "proc/swaps": "Filename\tType\n/dev/sda2 partition 1 0 -2\n",
        },
    )
    assert host.tuning(str(tmp_path)) == {
        "governors": {"performance": "0-2,4-7", "powersave": "3"},
        "turbo": False,
        "transparent_huge_pages": "madvise",
        "huge_pages_reserved": 512,
        "numa_balancing": True,
        "smt": True,
        "swap": True,
    }


def test_boost_where_there_is_no_intel_pstate(tmp_path: Path) -> None:
    write(tmp_path, {"sys/devices/system/cpu/cpufreq/boost": "1", "proc/swaps": "Filename\n"})
    found = host.tuning(str(tmp_path))
    assert found["turbo"] is True and found["swap"] is False


def process(root: Path, name: str, pid: int, parent: int, command: str, **environ: str) -> None:
    write(
        root,
        {
            f"proc/{name}/stat": f"{pid} ({command}) S {parent} {pid} 0",
            f"proc/{name}/environ": "".join(f"{key}={value}\0" for key, value in environ.items()),
        },
    )


def test_where_a_variable_comes_from(tmp_path: Path) -> None:
    """We (30) under a job (20) under a shell (10): what each was started with."""
    process(
        tmp_path, "self", 30, 20, "python", OMP_NUM_THREADS="4", MKL_NUM_THREADS="2", KMP_BLOCKTIME="1", PATH="/bin"
    )
    process(tmp_path, "20", 20, 10, "job (sh)", MKL_NUM_THREADS="2", KMP_BLOCKTIME="0")
    process(tmp_path, "10", 10, 0, "bash", MKL_NUM_THREADS="2")
    now = {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "2", "KMP_BLOCKTIME": "1", "PATH": "/bin", "ONEDNN_VERBOSE": "1"}
    found = {one.name: one.origin for one in variables.variables(now, str(tmp_path))}
    assert found == {
        "KMP_BLOCKTIME": "set by job (sh) (20)",
        "MKL_NUM_THREADS": "inherited, at least from bash (10)",
        "OMP_NUM_THREADS": "set by job (sh) (20)",
        "ONEDNN_VERBOSE": "set in this process",
    }


def test_an_ancestor_that_can_not_be_read(tmp_path: Path) -> None:
    process(tmp_path, "self", 30, 20, "python", OMP_NUM_THREADS="4")
    write(tmp_path, {"proc/20/stat": "20 (root's) S 1 20 0"})
    (found,) = variables.variables({"OMP_NUM_THREADS": "4"}, str(tmp_path))
    assert found.origin == "inherited, from root's (20) or above"
    (nowhere,) = variables.variables({"OMP_NUM_THREADS": "4"}, str(tmp_path / "empty"))
    assert nowhere.origin == "not known: /proc can't be read"


def test_which_variables_matter() -> None:
    environ = dict.fromkeys(("PATH", "ONEDNN_VERBOSE", "OMP_NUM_THREADS", "HOME", "LD_PRELOAD", "KMP_AFFINITY"), "x")
    assert list(relevant(environ)) == ["KMP_AFFINITY", "LD_PRELOAD", "OMP_NUM_THREADS", "ONEDNN_VERBOSE"]


def test_preload_file(tmp_path: Path) -> None:
    assert variables.preload_file(str(tmp_path)) == ""
    write(tmp_path, {"etc/ld.so.preload": "/usr/lib/libjemalloc.so.2\n"})
    assert variables.preload_file(str(tmp_path)) == "/usr/lib/libjemalloc.so.2"
