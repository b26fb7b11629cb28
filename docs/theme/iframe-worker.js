// Browsers do not allow workers in pages opened from a file. There, a hidden frame runs the worker's script, so that
// the search works without a server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside.importScripts = () => undefined
      const script = frame.contentDocument.createElement("script")
      script.src = url
      this.ready = new Promise(done => script.addEventListener("load", done))
      frame.contentDocument.body.append(script)
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
