import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';

/** A service from its sources, with the configuration of the folder; resolves once it listens. */
export const serve = async (cwd: string): Promise<{ url: string; pid: number; stop: () => Promise<void> }> => {
  const child = spawn(process.execPath, [resolve(import.meta.dirname, '../src/main.ts'), 'serve', '--json'], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // A benchmark that fails leaves no service behind.
  const killed = (): boolean => child.kill('SIGKILL');
  process.once('exit', killed);
  let url: string | undefined;
  // Lines of the log may come before the one that names the address.
  for await (const line of createInterface(child.stdout)) {
    url = (JSON.parse(line) as { url?: string }).url;
    if (url !== undefined) break;
  }
  child.stdout.resume();
  if (url === undefined) throw new Error('acp serve ended before it listened');
  const stop = async (): Promise<void> => {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
    process.off('exit', killed);
  };
  return { url, pid: child.pid ?? 0, stop };
};

/** The answer as JSON; throws with its text unless it is a success. */
export const call = async (url: string, method: string, path: string, body?: unknown): Promise<unknown> => {
  const answer = await fetch(url + path, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
  return answer.json();
};
