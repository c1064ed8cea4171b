import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFolder } from './support.ts';

const transports = ['in process', 'over HTTP'] as const;

for (const transport of transports)
  test(`${transport}: stop, status and resume; a stop without a target or with two is refused`, async (t) => {
    const folder = createFolder(t);
    await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
    if (transport === 'over HTTP') await folder.serve();
    const stopped = await folder.acp(['stop', '--agent', 'hello', '--reason', 'it greets too much']);
    assert.equal(stopped.code, 0, stopped.stderr);
    assert.match(stopped.stderr, /Stopped agent hello: 0 runs canceled, 0 queued runs held\./);
    const refused = await folder.acp(['run', 'hello', 'Hi']);
    assert.equal(refused.code, 8);
    assert.match(refused.stderr, /Agent "hello" is stopped by an operator/);
    await folder.acp(['stop', '--tenant']);
    assert.match((await folder.acp(['emergency', 'status'])).stdout, /Agent +default +hello +it greets too much/);
    const resumed = await folder.acp(['resume', '--agent', 'hello']);
    assert.match(resumed.stderr, /Resumed agent hello\.\nStill stopped: every agent of tenant default\./);
    assert.equal((await folder.acp(['run', 'hello', 'Hi'])).code, 8);
    await folder.acp(['resume', '--tenant']);
    assert.equal((await folder.acp(['run', 'hello', 'Hi'])).code, 0);
    assert.equal((await folder.acp(['resume', '--tenant'])).code, 4);
    const unknown = await folder.acp(['stop', '--agent', 'helo']);
    assert.equal(unknown.code, 0);
    assert.match(
      unknown.stderr,
      /There is no agent "helo" now; one that gets this name will not run\. Check the name\./,
    );
    assert.doesNotMatch(stopped.stderr, /There is no agent/);
    assert.equal((await folder.acp(['stop'])).code, 2);
    assert.equal((await folder.acp(['stop', '--all', '--agent', 'hello'])).code, 2);
  });
