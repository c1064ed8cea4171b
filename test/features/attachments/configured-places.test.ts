import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { overHttp, type TestApp } from '../../support/app.ts';
import { startS3Server } from '../../support/s3-server.ts';
import { fileOf, readAll } from './files.ts';

const uploadAndRead = async ({ client }: TestApp): Promise<string> => {
  const { id } = (await client.attachments.upload({ file: fileOf('the bytes') })).body;
  const { bytes } = await client.attachments.download({ params: { id } });
  return (await readAll(bytes)).toString();
};

overHttp('ATT-6 bytes lie in the configured folder', async (open, t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-attachments-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const app = await open({ service: { Attachments: { Store: 'Folder', Folder: folder } } });
  assert.equal(await uploadAndRead(app), 'the bytes');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  assert.ok(files.some(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8') === 'the bytes'));
});

overHttp('ATT-6 bytes lie in the configured bucket, below its prefix, with its credentials', async (open, t) => {
  const { settings, objects } = await startS3Server(t, 'of acp/');
  const app = await open({
    service: {
      Attachments: {
        Store: 'S3',
        S3: {
          ...{ Bucket: settings.bucket, Region: settings.region, Endpoint: settings.endpoint, Prefix: settings.prefix },
          AccessKeyId: settings.credentials?.accessKeyId,
          SecretAccessKey: settings.credentials?.secretAccessKey,
        },
      },
    },
  });
  assert.equal(await uploadAndRead(app), 'the bytes');
  assert.ok([...objects.keys()].every((key) => key.startsWith('of acp/')));
  assert.ok([...objects.values()].some((bytes) => bytes.toString() === 'the bytes'));
});
