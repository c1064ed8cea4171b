import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ConfigError,
  type ConfigInput,
  type ConfigProblem,
  type LoadedConfig,
  loadConfig,
} from '../../../src/core/config/index.ts';

type Given = Partial<Omit<ConfigInput, 'cwd'>> & {
  /** Content of `service.yaml`. */
  readonly yaml?: string | Uint8Array;
};

/** A real folder that is the working directory of a configuration. */
export class ConfigFolder implements Disposable {
  readonly path: string = mkdtempSync(join(tmpdir(), 'acp-config-'));

  write(name: string, content: string | Uint8Array): string {
    const path = join(this.path, name);
    writeFileSync(path, content);
    return path;
  }

  load({ yaml, ...input }: Given = {}): LoadedConfig {
    if (yaml !== undefined) this.write('service.yaml', yaml);
    return loadConfig({ env: {}, ...input, cwd: this.path });
  }

  /** The error of a configuration that must not load. */
  refuse(given: Given): ConfigError {
    try {
      this.load(given);
    } catch (error) {
      if (error instanceof ConfigError) return error;
      throw error;
    }
    throw new Error('the configuration was accepted');
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Loads a configuration from nothing but its file and sources, in a folder of its own. */
export const load = (given: Given = {}): LoadedConfig => {
  using folder = new ConfigFolder();
  return folder.load(given);
};

export const refuse = (given: Given): ConfigError => {
  using folder = new ConfigFolder();
  return folder.refuse(given);
};

export const problemAt = (error: ConfigError, key: string): ConfigProblem => {
  const found = error.problems.find((problem) => problem.key === key);
  if (found === undefined) throw new Error(`no problem at ${key} in:\n${error.report()}`);
  return found;
};
