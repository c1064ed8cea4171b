import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hasVideoTrack } from '../../../src/features/attachments/container-tracks.ts';
import { attachmentDisposition } from '../../../src/features/attachments/file-name.rules.ts';
import { detectionBytes, detectMediaType } from '../../../src/features/attachments/media-type.rules.ts';
import { mp4, recognized, webm } from './files.ts';

const readIn = (content: Uint8Array) => async (offset: number, length: number) =>
  content.subarray(offset, offset + length);

const typeOf = async (content: Uint8Array): Promise<string | null> => {
  const { mediaType, container } = await detectMediaType(content.subarray(0, detectionBytes));
  if (container === null) return mediaType;
  return (await hasVideoTrack(container, readIn(content), content.byteLength)) ? null : mediaType;
};

describe('ATT-7 the type of a file is that of its first bytes', () => {
  for (const [name, type, content] of recognized)
    test(`${name} is ${type ?? 'not recognized'}`, async () => assert.equal(await typeOf(content), type));
});

describe('ATT-7 a container that was made to confuse', () => {
  const damaged: readonly [string, 'mp4' | 'webm', Buffer][] = [
    ['an MP4 that ends in a box', 'mp4', mp4('M4A ', 'soun').subarray(0, 6100)],
    ['an MP4 with a box of no size', 'mp4', Buffer.from('0000001066747970', 'hex')],
    ['a WebM of zeros', 'webm', Buffer.concat([webm([2]).subarray(0, 20), Buffer.alloc(100)])],
    ['nothing', 'webm', Buffer.alloc(0)],
  ];
  for (const [name, container, content] of damaged)
    test(`${name} is read to its end and has no video`, async () =>
      assert.equal(await hasVideoTrack(container, readIn(content), content.byteLength), false));

  test('a million empty boxes are not all read', async () => {
    let reads = 0;
    const read = async (): Promise<Uint8Array> => {
      reads += 1;
      return Buffer.from('0000000866726565', 'hex');
    };
    assert.equal(await hasVideoTrack('mp4', read, 8_000_000), false);
    assert.ok(reads < 3000, `${reads}`);
  });
});

test('ATT-13 RFC 6266: what a plain file name cannot hold is in the encoded one', () => {
  assert.equal(
    attachmentDisposition('a "b"\\c.txt'),
    `attachment; filename="a _b__c.txt"; filename*=UTF-8''a%20%22b%22%5Cc.txt`,
  );
  assert.equal(attachmentDisposition('😀'), `attachment; filename="_"; filename*=UTF-8''%F0%9F%98%80`);
  assert.equal(attachmentDisposition("it's"), `attachment; filename="it's"; filename*=UTF-8''it%27s`);
});
