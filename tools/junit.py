"""Test results in the JUnit form that ctest writes too: one reader for all of them."""

import dataclasses
import pathlib
import xml.etree.ElementTree as xml


@dataclasses.dataclass
class Case:
    name: str
    outcome: str  # passed, failed or skipped
    seconds: float = 0.0
    detail: str = ""


def write(path, suite, cases):
    root = xml.Element("testsuite", name=suite, tests=str(len(cases)))
    for case in cases:
        element = xml.SubElement(root, "testcase", name=case.name, classname=suite,
                                 time=f"{case.seconds:.3f}")
        if case.outcome == "failed":
            xml.SubElement(element, "failure", message=case.detail[:4000])
        elif case.outcome == "skipped":
            xml.SubElement(element, "skipped", message=case.detail)
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _skip_reason(element):
    """gtest prints the reason above its [  SKIPPED ] line; ctest says only that it matched."""
    message = element.find("skipped").get("message", "")
    output = (element.findtext("system-out") or "").splitlines()
    for index, line in enumerate(output):
        if line.startswith("[  SKIPPED ]") and index > 0 and "MATCHED" in message:
            return output[index - 1].strip()
    return message


def read(path):
    cases = []
    for element in xml.parse(path).getroot().iter("testcase"):
        case = Case(element.get("name", "?"), "passed", float(element.get("time", 0) or 0))
        if element.find("skipped") is not None:
            case.outcome, case.detail = "skipped", _skip_reason(element)
        elif element.find("failure") is not None or element.find("error") is not None:
            case.outcome = "failed"
        cases.append(case)
    return cases
