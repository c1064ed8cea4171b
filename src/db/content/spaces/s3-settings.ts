/** A bucket of Amazon S3 or of a server that speaks its protocol. */
export interface S3Settings {
  readonly bucket: string;
  readonly region: string;
  /** Null: that of Amazon for the region. Buckets of another one are named in the path. */
  readonly endpoint: string | null;
  /** In front of every name, as it is. */
  readonly prefix: string;
  /** Null: the client finds credentials where its other users have them (variables, profile, web identity, instance). */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | null;
}
