import type { S3Client } from '@aws-sdk/client-s3';
import type { Spool } from './spool.ts';

type Client = typeof import('@aws-sdk/client-s3');

interface ObjectName {
  readonly Bucket: string;
  readonly Key: string;
}

// The protocol asks for 5 MiB at least, and for no more than 10,000 of them; a file has 1 GiB at most.
const partBytes = 8_388_608;
// Each holds a part in memory: 32 MiB in all, however many files come at once.
const uploadsAtOnce = 4;

/** At most so many pieces of work at a time; the others wait their turn. */
const createTurns = (most: number) => {
  const waiting: (() => void)[] = [];
  let free = most;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
};

/** What was received whole, sent to a bucket in parts that are tried again one by one. */
export const createUploads = (s3: Client, client: S3Client) => {
  const inTurn = createTurns(uploadsAtOnce);

  const inParts = async (name: ObjectName, spool: Spool): Promise<void> => {
    const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand(name));
    if (UploadId === undefined) throw new Error('The server gave no id of an upload.');
    try {
      const Parts: { ETag: string | undefined; PartNumber: number }[] = [];
      for (let at = 0; at < spool.sizeBytes(); at += partBytes) {
        const PartNumber = Parts.length + 1;
        const Body = await spool.read(at, partBytes);
        const { ETag } = await client.send(new s3.UploadPartCommand({ ...name, UploadId, PartNumber, Body }));
        Parts.push({ ETag, PartNumber });
      }
      await client.send(new s3.CompleteMultipartUploadCommand({ ...name, UploadId, MultipartUpload: { Parts } }));
    } catch (error) {
      // Parts cost as much as objects. What cannot be aborted now goes with what is abandoned.
      await client.send(new s3.AbortMultipartUploadCommand({ ...name, UploadId })).catch(() => undefined);
      throw error;
    }
  };
  return {
    upload: (name: ObjectName, spool: Spool): Promise<void> =>
      inTurn(async () => {
        if (spool.sizeBytes() > partBytes) await inParts(name, spool);
        else await client.send(new s3.PutObjectCommand({ ...name, Body: await spool.read(0, partBytes) }));
      }),
    /** Ends the uploads of a name whose process died. */
    async abortUnfinished(name: ObjectName): Promise<void> {
      const { Uploads } = await client.send(
        new s3.ListMultipartUploadsCommand({ Bucket: name.Bucket, Prefix: name.Key }),
      );
      for (const { Key, UploadId } of Uploads ?? [])
        if (Key === name.Key && UploadId !== undefined)
          await client.send(new s3.AbortMultipartUploadCommand({ ...name, UploadId }));
    },
  };
};
