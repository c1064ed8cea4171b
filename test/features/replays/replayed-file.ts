import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { readDefinition } from '../../../src/features/agents/index.ts';
import { type BundleReport, replayBundle } from '../../../src/features/replays/index.ts';
import { createFolder, type Folder } from '../../cli/support.ts';
import { type OpenApp, openApp, type TestApp, type TransportName } from '../../support/app.ts';
import { bundleTextOf, openText } from './bundle-calls.ts';

export type Change = Readonly<Record<string, unknown>>;

export interface Replays {
  /** `acp replay FILE`, with nothing of the service around it. */
  replay(app: TestApp, runId: string): Promise<BundleReport>;
  /** Replays the file, and the redacted bundle of the same run: both must be identical. */
  identical(app: TestApp, ...runIds: readonly string[]): Promise<void>;
  /** The same run against a definition that takes the place of the recorded one. */
  against(app: TestApp, runId: string, definition: Change, redact?: boolean): Promise<BundleReport>;
}

const replaysIn = (folder: Folder): Replays => {
  const replay: Replays['replay'] = async (app, runId) => {
    writeFileSync(join(folder.path, 'run.acp'), gzipSync(await bundleTextOf(app.client, runId)));
    const { code, stdout, stderr } = await folder.acp(['replay', 'run.acp', '--json']);
    assert.equal(stderr, '');
    const report = JSON.parse(stdout) as BundleReport;
    assert.equal(code, { identical: 0, drifted: 10, missing: 11 }[report.result]);
    return report;
  };
  return {
    replay,
    async identical(app, ...runIds) {
      for (const runId of runIds) {
        const report = await replay(app, runId);
        assert.deepEqual([report.divergences, report.result], [[], 'identical']);
        const redacted = await replayBundle(await openText(await bundleTextOf(app.client, runId, true)), new Map());
        assert.deepEqual([redacted.divergences, redacted.redacted], [[], true]);
      }
    },
    async against(app, runId, definition, redact = false) {
      const { name } = definition as { name: string };
      const bundle = await openText(await bundleTextOf(app.client, runId, redact));
      return replayBundle(bundle, new Map([[name, readDefinition(definition)]]));
    },
  };
};

/** One recording service in this process; its bundles are replayed by the program. */
export const replayTest = (
  name: string,
  body: (open: OpenApp, replays: Replays, t: TestContext) => Promise<void>,
  transport: TransportName = 'in process',
): void => {
  test(name, (t) => body((setup) => openApp(t, transport, setup), replaysIn(createFolder(t)), t));
};
