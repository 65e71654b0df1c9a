"""Drives a headless Chromium through its DevTools pipe; the standard library suffices."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    """The browser's program, or None where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


class Page:
    """One page, in a browser that is started for it. Use as a context manager."""

    def __init__(self, width=1440, height=1000):
        self._profile = tempfile.TemporaryDirectory()
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()

        def place_pipes():  # the browser reads descriptor 3 and writes descriptor 4
            ends = os.dup(to_browser), os.dup(from_browser)
            moved = [os.dup2(end, 100 + i) for i, end in enumerate(ends)]
            os.dup2(moved[0], 3)
            os.dup2(moved[1], 4)

        self._browser = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--mute-audio",
             "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}",
             f"--window-size={width},{height}", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._id, self._session = b"", 0, None
        self.errors = []  # exceptions and console errors of the page
        try:
            self._attach(width, height)
        except BaseException:
            self.__exit__()
            raise

    def _attach(self, width, height):
        target = next(t for t in self._call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self._call(domain + ".enable")
        self._call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1,
                   uploadThroughput=-1)
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._browser.terminate()
        self._browser.wait()
        os.close(self._to)
        os.close(self._from)
        try:
            self._profile.cleanup()
        except OSError:  # a process of the browser is still writing
            pass

    def _read(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._from, 1 << 20)
            if not part:
                raise ConnectionError("the browser has ended")
            self._buffer += part
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def _call(self, method, timeout=180, **parameters):
        self._id += 1
        message = {"id": self._id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data):]
        deadline = time.monotonic() + timeout
        while True:
            answer = self._read(deadline)
            if answer.get("method") == "Runtime.exceptionThrown":
                details = answer["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            if answer.get("method") == "Runtime.consoleAPICalled" and answer["params"]["type"] == "error":
                self.errors.append(str(answer["params"]["args"]))
            if answer.get("id") == self._id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path, drawn="settled().then(() => true)"):
        """Opens a file and waits until its first view is drawn. Returns the seconds until then.

        `drawn` is a script whose promise is resolved when the view is drawn."""
        begin = time.monotonic()
        self._call("Page.navigate", url="file://" + os.path.abspath(path))
        while self.run("document.readyState") != "complete":
            if time.monotonic() - begin > 180:
                raise TimeoutError(f"{path} is not loaded after 180 s")
            time.sleep(0.01)
        self._drawn = drawn
        self.run(drawn)
        return time.monotonic() - begin

    def run(self, expression):
        """The value of a script, which may be a promise."""
        result = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def size(self, width, height):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self._call("Emulation.setEmulatedMedia",
                   features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def key(self, key, shift=False):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            self._call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 if shift else 0, **text)

    def mouse(self, kind, x, y, **more):
        self._call("Input.dispatchMouseEvent", type="mouse" + kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("Moved", x, y)
        self.mouse("Pressed", x, y, button="left", clickCount=1)
        self.mouse("Released", x, y, button="left", clickCount=1)

    def wheel(self, x, y, delta, modifiers=0):
        self.mouse("Wheel", x, y, deltaX=0, deltaY=delta, modifiers=modifiers)

    def touch(self, *ways, steps=8):
        """Moves fingers at the same time, each from (x, y) to (x, y)."""
        self._call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=len(ways))
        for step in range(steps + 1):
            places = [{"id": i, **{axis: begin[k] + (end[k] - begin[k]) * step / steps for k, axis in enumerate("xy")}}
                      for i, (begin, end) in enumerate(ways)]
            self._call("Input.dispatchTouchEvent", type="touchMove" if step else "touchStart", touchPoints=places)
        self._call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self._call("Emulation.setTouchEmulationEnabled", enabled=False)

    def screenshot(self, path, whole=False):
        self.run(self._drawn)
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def print(self, path):
        pdf = self._call("Page.printToPDF", printBackground=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(pdf["data"]))
