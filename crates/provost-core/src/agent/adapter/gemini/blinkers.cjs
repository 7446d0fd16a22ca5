// Loaded by Gemini CLI before anything else. It reads instructions, settings and variables of the
// tree whatever its own settings say, and believes settings of an administrator only if root owns
// them, whom no box has. So those of the tree are not there for it, and ours look like root's. What
// it starts sees everything as it is.
const fs = require("node:fs");
const path = require("node:path");

const OURS = "/run/provost";
const HIDDEN = [".env", ".gemini", "gemini.md"];

function isHidden(file) {
  const whole = path.resolve(file);
  const within = path.relative(process.env.HOME, whole);
  const inHome = !within.startsWith("..") && !path.isAbsolute(within);
  return !inHome && whole.toLowerCase().split("/").some((part) => HIDDEN.includes(part));
}

function absent(file) {
  const error = new Error(`ENOENT: no such file or directory, '${file}'`);
  return Object.assign(error, { code: "ENOENT", errno: -2, path: String(file) });
}

function owned(file, stats) {
  if (stats && (OURS.startsWith(String(file)) || String(file).startsWith(OURS))) {
    stats.uid = 0;
    stats.mode &= ~0o22;
  }
  return stats;
}

function wrap(place, promises) {
  for (const name of Object.keys(place)) {
    const call = place[name];
    if (typeof call !== "function" || !/^[a-z]/.test(name)) continue;
    const wrapped = function (file, ...more) {
      const named = typeof file === "string" || file instanceof URL || Buffer.isBuffer(file);
      const text = file instanceof URL ? file.pathname : String(file);
      if (named && isHidden(text)) {
        if (promises) return Promise.reject(absent(text));
        if (name === "existsSync") return false;
        if (name.endsWith("Sync")) throw absent(text);
        const last = more.at(-1);
        if (typeof last === "function") return process.nextTick(last, absent(text));
      }
      const result = call.call(this, file, ...more);
      if (!named || !/^l?stat(Sync)?$/.test(name)) return result;
      return promises ? result.then((stats) => owned(text, stats)) : owned(text, result);
    };
    place[name] = Object.assign(wrapped, call);
  }
}

wrap(fs, false);
wrap(fs.promises, true);
require("node:module").syncBuiltinESMExports();
delete process.env.NODE_OPTIONS;
