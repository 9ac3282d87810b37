"""The doorway: PyTorch's namespaces, `as_torch`, and scripts that run with `torch` in them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import minitorch as mt
from minitorch_torch.run import names_in, page

SCRIPT = """
    import sys
    import torch
    import torch.backends.cudnn as cudnn
    import torch.distributed as dist
    import torch.nn as nn
    import torch.nn.functional as F
    from torch.autograd import Variable
    from torch.cuda.amp import GradScaler, autocast
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.checkpoint import checkpoint
    import helper

    cudnn.benchmark = torch.backends.cudnn.deterministic = True
    device = torch.device("cuda" if torch.cuda.is_available() or torch.backends.mps.is_available() else "cpu")
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    model = nn.DataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))).to(device)
    optimizer, scaler = torch.optim.Adam(model.parameters()), GradScaler()
    for x, y in DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4, pin_memory=True):
        x, y = Variable(x.to(device)), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        with autocast():
            loss = F.mse_loss(checkpoint(model, x, use_reentrant=False), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    with torch.inference_mode():
        print(sys.argv[1:], loss.device.type, dist.get_world_size(), helper.three(torch.ones(1)).type(torch.LongTensor))
"""


def run(folder: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(textwrap.dedent(script))
    (folder / "helper.py").write_text("import torch\ndef three(x):\n    return torch.add(x, 2)\n")
    command = [sys.executable, "-m", "minitorch.run", str(folder / "program.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_script_runs_unchanged(tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPT, "--epochs", "3")
    assert done.stdout == "['--epochs', '3'] cpu 1 tensor([3])\n", done.stderr
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_a_script_that_needs_more_ends_with_a_page_of_all_that_is_missing(tmp_path: Path) -> None:
    script = (
        "import torch\nfrom torch import nn\nprint(torch.fft.rfft(torch.ones(4)))\nnn.NoSuchLayer(3)\ntorch.fft.fft\n"
    )
    done = run(tmp_path, script)
    assert done.returncode == 1 and "line 3" in done.stderr
    wanted = ["torch.fft  (program.py:3, program.py:5)", "complex numbers are left out", "torch.nn.NoSuchLayer"]
    assert all(each in done.stderr for each in wanted), done.stderr


def test_names_are_found_through_every_form_of_import(tmp_path: Path) -> None:
    imports = "import torch.nn as n, torch.optim", "from torch.utils import data as d"
    source = "\n".join([*imports, "n.Linear", "d.Dataset", "torch.optim.SGD", "x.torch"])
    wanted = {"nn", "optim", "utils.data", "nn.Linear", "utils.data.Dataset", "optim.SGD"}
    assert {name for name, _ in names_in(source)} == {f"torch.{name}" for name in wanted}
    (tmp_path / "a.py").write_text(source)
    assert page([tmp_path / "a.py"]) == ""


def test_standing_in_for_torch_can_be_undone() -> None:
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    with mt.as_torch(hide=True) as handle:
        import torch
        import torch.nn.functional as F

        assert torch is mt and F is mt.nn.functional and sys.modules["torch.nn"] is mt.nn
        assert isinstance(torch.ones(1), torch.Tensor)
    handle.undo()
    assert {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"} == before
    assert mt.__name__ == mt.__spec__.name == "minitorch"


def test_an_installed_pytorch_is_not_hidden_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(ImportError, match=r"as_torch\(hide=True\)"):
        mt.as_torch()
    with mt.as_torch(hide=True):
        import torch

        assert torch is mt
    assert str(__import__("torch").__file__) == str(tmp_path / "torch.py")
    del sys.modules["torch"]  # not by `monkeypatch`, which would put it back


def test_devices_have_pytorchs_names() -> None:
    assert [repr(mt.device(each)) for each in ("cpu", "cuda:1")] == [
        "device(type='cpu')",
        "device(type='cuda', index=1)",
    ]
    assert mt.device("cuda", 1) == mt.device("cuda:1") != mt.device("cuda") and mt.ones(1).device == "cpu"
    with pytest.raises(RuntimeError, match="there is no kind of device 'gpux'"):
        mt.device("gpux")
    with pytest.raises(mt.errors.DeviceError):
        mt.ones(1).to(mt.device("cuda"))


def test_what_is_absent_says_why() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'complex64': complex numbers are left out"):
        _ = vars(mt)["__getattr__"]("complex64")
    with pytest.raises(AttributeError, match=r"module 'minitorch' has no attribute 'no_such_name'$"):
        _ = vars(mt)["__getattr__"]("no_such_name")


def test_a_group_of_processes_is_refused() -> None:
    with pytest.raises(RuntimeError, match="sharding"):
        mt.distributed.init_process_group("gloo")
    for function in (mt.cuda.synchronize, mt.cuda.current_device):
        with pytest.raises(mt.errors.DeviceError):
            function()


def test_the_class_of_tensors_makes_float32_of_data_or_sizes() -> None:
    assert mt.Tensor([1, 2]).tolist() == [1.0, 2.0] and mt.Tensor([1, 2]).dtype is mt.float32
    assert mt.Tensor(2, 3).shape == (2, 3) == mt.Tensor(mt.Size([2, 3])).shape and mt.Tensor().shape == (0,)
    x = mt.ones(2)
    assert mt.Tensor(x).tolist() == [1, 1]
    with pytest.raises(TypeError, match="float32"):
        mt.Tensor(mt.ones(2, dtype=mt.int64))
