"""Checks the files of deploy/ without a server: `cargo xtask test` runs it. Prints each problem; exits with 1 if any.

- Kubernetes: every manifest against the schemas of the oldest and the newest supported version, and that each
  kustomization lists existing files and each file is listed
- Terraform: every file is parsed; every variable, local value and resource that is used is declared
- the state machines: every transition leads to a state, every placeholder is given
- Windlass: every argument list begins with a command, and every `${VAR}` of windlass.toml is given
"""

import json
import pathlib
import re
import sys

import hcl2
import kubernetes_validate
import yaml

HERE = pathlib.Path(__file__).parent
KUBERNETES_VERSIONS = ["1.32", "1.37"]
COMMANDS = {"serve", "worker", "run"}
problems = []


def report(path, message):
    problems.append(f"{path}: {message}")


def kubernetes(root):
    for kustomization in sorted(root.rglob("kustomization.yaml")):
        folder = kustomization.parent
        content = yaml.safe_load(kustomization.read_text())
        listed = {name for name in content.get("resources", [])}
        listed |= {name for generator in content.get("configMapGenerator", []) for name in generator["files"]}
        for name in sorted(listed):
            if not (folder / name).exists():
                report(kustomization, f"{name} does not exist")
        for path in sorted(folder.iterdir()):
            if path.is_file() and path != kustomization and path.name not in listed:
                report(kustomization, f"{path.name} is not listed")
            if path.suffix == ".yaml" and path != kustomization:
                for manifest in yaml.safe_load_all(path.read_text()):
                    validate(path, manifest)


def validate(path, manifest):
    for version in KUBERNETES_VERSIONS:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            report(path, f"{manifest['kind']}: {error.message} (Kubernetes {version})")
    for container in manifest.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
        if container["args"][0] not in COMMANDS:
            report(path, f"`{container['args'][0]}` is not one of {', '.join(sorted(COMMANDS))}")


def parse(path):
    try:
        with path.open() as file:
            return hcl2.load(file)
    except Exception as error:  # each version of the parser has its own exceptions
        report(path, f"cannot be parsed: {error}")
        return {}


def names(blocks):
    return {name.strip('"') for block in blocks for name in block if not name.startswith("__")}


def terraform(root):
    texts = {path: path.read_text() for path in sorted(root.glob("*.tf"))}
    files = [parse(path) for path in texts]
    declared = {f"var.{name}" for file in files for name in names(file.get("variable", []))}
    declared |= {f"local.{name}" for file in files for name in names(file.get("locals", []))}
    for kind, prefix in [("resource", ""), ("data", "data."), ("ephemeral", "ephemeral.")]:
        for block in (block for file in files for block in file.get(kind, [])):
            for resource, instances in block.items():
                declared |= {f"{prefix}{resource}.{name}".replace('"', "") for name in instances}
    used = re.compile(r"(?<![\w.\"/-])((?:var|local)\.\w+|(?:data\.|ephemeral\.)?(?:aws|random)_\w+\.\w+)")
    for path, text in texts.items():
        code = re.sub(r"(?m)^\s*#.*$", "", text)
        for name in sorted(set(used.findall(code)) - declared):
            report(path, f"{name} is not declared")
    for name in ("state-machine.json", "state-machine-functions.json"):
        state_machine(root / name, "\n".join(texts.values()))
    variables = set(re.findall(r"\$\{(\w+)\}", uncommented(root / "../../examples/nightly/windlass.toml")))
    for name in sorted(variables - set(re.findall(r"\b[A-Z][A-Z_]+\b", texts[root / "workers.tf"]))):
        if not name.startswith("REPLICA_"):
            report(root / "workers.tf", f"the tasks get no {name}, which windlass.toml uses")


def uncommented(path):
    return re.sub(r"(?m)(^|\s)#.*$", "", path.read_text())


def state_machine(path, code):
    text = path.read_text()
    given = re.search(re.escape(path.name) + r"\", \{(.*?)\n\s*\}\)", code, re.DOTALL)
    given = set(re.findall(r"(?m)^\s*(\w+)\s*=", given.group(1))) if given else set()
    for name in sorted(given ^ set(re.findall(r"\$\{(\w+)\}", text))):
        report(path, f"${{{name}}} is used and not given, or given and not used")
    # Some placeholders are numbers.
    transitions(path, json.loads(re.sub(r"\$\{\w+\}", "1", text)))


def transitions(path, machine):
    states = machine["States"]
    reached = {machine["StartAt"]}
    for name, state in states.items():
        targets = {state.get("Next"), state.get("Default")} | {rule.get("Next") for rule in state.get("Catch", []) + state.get("Choices", [])}
        targets = {target for target in targets if target}
        ends = state.get("End") or state["Type"] in ("Fail", "Succeed")
        if not ends and "Next" not in state and state["Type"] != "Choice":
            report(path, f"`{name}` has neither Next nor End")
        reached |= targets
        if "ItemProcessor" in state:
            transitions(path, state["ItemProcessor"])
    for name in sorted(reached ^ set(states)):
        report(path, f"state `{name}` does not exist, or is never reached")


def configuration(toml, secret):
    for name in sorted(set(re.findall(r"\$\{(\w+)\}", uncommented(toml))) - secret):
        report(toml, f"${{{name}}} is not in the Secret that docs/deploying.md creates")


kubernetes(HERE / "kubernetes")
page = (HERE / "../docs/deploying.md").read_text()
configuration(HERE / "kubernetes/config/windlass.toml", set(re.findall(r"--from-literal=(\w+)=", page)))
terraform(HERE / "terraform")
for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(1 if problems else 0)
