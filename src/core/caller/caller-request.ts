/** What authentication may see of a request: the peer, the target and the headers, never the body. */
export interface CallerRequest {
  /** Address of the socket's peer; a proxy's, where there is one. */
  readonly peerAddress: string;
  readonly method: string;
  /** As sent, such as `1.1`. */
  readonly httpVersion: string;
  /** Path below the prefix, as called, without the query. */
  readonly path: string;
  /** Value of a header by its lower-case name; repeated list headers are joined by `, `. */
  header(name: string): string | undefined;
  /** How often a header was sent, by its lower-case name: a credential must not be sent twice. */
  headerCount(name: string): number;
  /** True when a header was sent whose lower-case name is such a one. */
  hasHeader(isSuch: (name: string) => boolean): boolean;
}
