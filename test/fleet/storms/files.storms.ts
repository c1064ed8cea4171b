import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { atGate } from './gate.ts';
import { ask, read, type Storm, send, together } from './storm.ts';

// Equal bytes that many bring, read and take away.

const boundary = 'storm-of-files';

const upload = async (storm: Storm, content: string, sessionId: string): Promise<{ id: string; sha256: string }> => {
  const body = [
    `--${boundary}`,
    'content-disposition: form-data; name="file"; filename="notes.txt"',
    'content-type: text/plain',
    '',
    content,
    `--${boundary}--`,
    '',
  ].join('\r\n');
  const headers = {
    'content-type': `multipart/form-data; boundary=${boundary}`,
    'content-length': String(Buffer.byteLength(body)),
  };
  const answer = await ask(storm, `/api/attachments?sessionId=${sessionId}`, { method: 'POST', body, headers });
  assert.equal(answer.status, 201, answer.text);
  return answer.json();
};

/** ATT-6. */
export const equalBytesAreIndependent = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1) {
    const content = `Round ${round}. ${'The same for everybody. '.repeat(2000 * storm.rounds)}`;
    const sha256 = createHash('sha256').update(content).digest('hex');
    const sessionId = `files-${round}`;
    const files = await together(() => upload(storm, content, sessionId));
    assert.equal(new Set(files.map(({ id }) => id)).size, files.length);
    for (const file of files) assert.equal(file.sha256, sha256);
    const assertWhole = async (id: string): Promise<void> => {
      const answer = await ask(storm, `/api/attachments/${id}`);
      assert.equal(answer.status, 200, answer.text);
      assert.ok(answer.text === content, 'all bytes are there');
    };
    const remove = (id: string) => send(storm, 'DELETE', `/api/attachments/${id}`);
    // One half goes while the other one is read.
    await together(async (client) => {
      const { id } = files[client] ?? assert.fail('each has one');
      if (client % 2 === 1) return void (await remove(id));
      for (let reads = 0; reads < 2; reads += 1) await assertWhole(id);
    });
    const left = files.filter((_, client) => client % 2 === 0);
    for (const { id } of files.filter(({ id: one }) => !left.some(({ id: other }) => one === other)))
      assert.equal((await ask(storm, `/api/attachments/${id}`)).status, 404);
    // The last ones go while the same comes again.
    const again = await together(async (client) => {
      const mine = left[client];
      if (mine !== undefined) await remove(mine.id);
      return client % 4 === 0 ? [await upload(storm, content, sessionId)] : [];
    });
    for (const { id } of again.flat()) await assertWhole(id);
    const listed = await read<readonly { id: string }[]>(storm, `/api/attachments?sessionId=${sessionId}&take=200`);
    assert.deepEqual(
      listed.map(({ id }) => id).toSorted(),
      again
        .flat()
        .map(({ id }) => id)
        .toSorted(),
    );
  }
};

/** ATT-6: the last file of its bytes goes, and an equal one comes in the same moment. */
export const equalBytesGoTogether = async (storm: Storm): Promise<void> => {
  const sessionId = 'going-files';
  for (let round = 0; round < storm.rounds; round += 1) {
    const content = `Round ${round}. ${'Here and gone. '.repeat(1000)}`;
    const comes = () => upload(storm, content, sessionId);
    const goes = (id: string) => send(storm, 'DELETE', `/api/attachments/${id}`);
    const assertWhole = async (id: string): Promise<void> => {
      const answer = await ask(storm, `/api/attachments/${id}`);
      assert.deepEqual([answer.status, answer.text === content], [200, true], answer.text.slice(0, 200));
    };
    const first = await comes();
    let second = first;
    const leaving = 'old.place is not null and new.place is null';
    const removal = { table: 'attachment_contents', on: 'update', when: leaving, waiting: 1 } as const;
    await atGate(
      storm,
      removal,
      () => goes(first.id),
      async () => {
        second = await comes();
      },
    );
    await assertWhole(second.id);
    const arrival = { table: 'attachments', on: 'insert', when: 'true', waiting: 1 } as const;
    const third = await atGate(storm, arrival, comes, () => goes(second.id));
    await assertWhole(third.id);
    await goes(third.id);
  }
};
