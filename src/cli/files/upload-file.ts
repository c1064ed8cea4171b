import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Client } from '../../client/client.ts';
import { AcpError } from '../../contract/errors.ts';
import type { AttachmentDescriptor } from '../../features/attachments/attachments.schema.ts';
import { unreadableFile } from './file-fault.ts';

const openFile = async (path: string): Promise<FileHandle> => {
  let handle: FileHandle;
  try {
    handle = await open(path, 'r');
  } catch (cause) {
    throw unreadableFile(path, cause);
  }
  if ((await handle.stat()).isDirectory()) {
    await handle.close();
    throw new AcpError('validation-failed', `${path} cannot be read: it is a folder.`);
  }
  return handle;
};

/** Uploads a file of this machine while it is read. */
export const uploadFile = async (client: Client, path: string, sessionId?: string): Promise<AttachmentDescriptor> => {
  const handle = await openFile(path);
  const bytes = handle.createReadStream();
  try {
    const query = sessionId === undefined ? {} : { sessionId };
    return (await client.attachments.upload({ query, file: { name: basename(path), bytes } })).body;
  } finally {
    bytes.destroy();
  }
};
