// The types of client.js for TypeScript: those of its options, and below those of the wire, which a program makes.

export * from "./client.js";

import type { ApiError } from "./client.js";

/** All but `token` replace the globals, or what the client has for itself. */
export interface ClientOptions {
  /** A fixed token instead of a session. */
  token?: string;
  /** Where the session is; by default in memory. */
  store?: SessionStore;
  fetch?: typeof fetch;
  WebSocket?: new (url: string) => any;
  EventSource?: new (url: string) => any;
  /** A number from 0 to 1, as of Math.random. */
  random?: () => number;
}

export interface RequestOptions {
  query?: Record<string, any>;
  /** What is sent as JSON. */
  body?: any;
  signal?: AbortSignal;
  /** Whether to send no token. */
  open?: boolean;
  headers?: Record<string, string>;
  /** ms for the whole answer. */
  within?: number;
  /** Whether to go on when the page is closed. */
  keepalive?: boolean;
}

/** The `code` is that of a sign-in link. */
export type Credentials = { login: string; password: string } | { email: string; password: string } | { code: string };

/** A session, as it may be stored. Its times are in ms since 1970, by this machine's clock. */
export interface Session {
  token: string;
  refreshToken: string;
  expires: number;
  refreshAt: number;
  user: OwnUser;
}

/** Where the session is. Clients that have the same one share it. */
export interface SessionStore {
  load: () => Session | null;
  save: (session: Session | null) => void;
  /** Runs one `work` at a time among all that share the store, and returns its result. */
  lock: <T>(work: () => Promise<T>) => Promise<T>;
}

export interface StreamOptions {
  /** By default the first. */
  path?: "/v1/stream" | "/v1/stream/user";
  /** Seconds: counts for each period of this length, in the place of the events. */
  summary?: number | string;
  /** Where to begin: a cursor, a time, or an age such as `-15m`. */
  since?: string;
  /** By default a WebSocket, and after two failures server-sent events. */
  transport?: "websocket" | "events";
  /** Gets every message once, control messages too. */
  onMessage?: (message: Message) => void;
  /** Gets each new state of the connection. */
  onState?: (state: StreamState) => void;
  /** Gets the server's refusal of an update. */
  onRefusedUpdate?: (error: ApiError) => void;
}

export interface SubscriptionOptions {
  /** Where a new one begins: a cursor, a time, or an age such as `-15m`. By default at the newest entry. */
  since?: string;
  /** Shares a new one among several readers, by so many parts. */
  parts?: number;
  /** The https URL of a webhook, to which the server sends the events. Without it, an existing webhook ends. */
  deliver?: string;
  /** Most events in one request to the webhook. */
  batch?: number;
}

export interface StreamState {
  /** `refused`, `ended` and `closed` are final. */
  name: "connecting" | "live" | "silent" | "catching up" | "waiting" | "offline" | "signed out" | "refused" | "ended" | "closed";
  /** The number of this attempt to connect, or of the latest. */
  attempt?: number;
  /** When a stream that waits or is offline connects again, in ms since 1970. */
  retryAt?: number;
  /** Of a silent stream, whose heartbeat is overdue: when its last message came, in ms since 1970. The server is being asked. */
  since?: number;
  /** Why the stream waits or has ended. */
  reason?: string;
  /** How far a stream is that is catching up: a time of the server. */
  at?: string;
  error?: ApiError;
}

/** The parameters of a stream. For those of a plug-in: `declare module "stream-server-client" { interface StreamParameters { … } }`. */
export interface StreamParameters extends Filters {
  /** Whether `matched` says why a message is there. */
  explain?: boolean | "true" | "false";
  /** Where to begin: a cursor, a time, or an age such as `-15m`. */
  since?: string;
  /** The name of a subscription, which the server keeps with its filters and its cursor. No other parameter is beside it. */
  subscription?: string;
}

/** Why the stream has a message: a rule, or with `explain` also a filter. Each filter adds members of its own. */
export interface Matched {
  filter?: string;
  id?: string;
  tag?: string;
  indices?: [number, number][];
  parts?: { part: string; indices?: [number, number][] }[];
  [member: string]: unknown;
}

/** The members of every message with a place in the log. */
export interface Placed {
  /** Position of the message. With it as `since`, a stream goes on after the message. */
  cursor: string;
  /** When it happened: ISO 8601 in UTC, with milliseconds. */
  at: string;
  /** With rules or `explain`: why the stream has the message. */
  matched?: Matched[];
}

/** A WebSocket refuses an operation of the client. */
export interface OperationRefused {
  kind: "error";
  id?: string | number;
  error: ErrorDetail;
}

/** A WebSocket goes on with another token of the client, until `expires`. */
export interface TokenAccepted {
  kind: "token";
  id?: string | number;
  expires: string;
}

/** Every message of a stream. */
export type Message = StreamEvent | Control;

// From here on made by clients/javascript/wire_types.py: change nothing below.

/** A point on the Earth, longitude and latitude in degrees (WGS 84). */
export interface Location {
  lon: number;
  lat: number;
}

/** A named place. `box` is west, south, east, north in degrees. A box with west > east crosses longitude 180. */
export interface Place {
  name: string;
  /** an ISO 3166-1 alpha-2 country code */
  country?: string;
  box?: [number, number, number, number];
}

/** A link to an image, a video or a sound. The server does not fetch it. */
export interface Media {
  url: string;
  type: "image" | "video" | "gif" | "audio";
}

/** `@login` in a text; `id` is omitted if no user has this login. */
export interface MentionEntity {
  login: string;
  /** start and end in the text, in code points */
  indices: [number, number];
  /** a decimal number */
  id?: string;
}

/** A hashtag `#text` or a cashtag `$text` in a text. */
export interface TagEntity {
  text: string;
  /** start and end in the text, in code points */
  indices: [number, number];
}

/** A link in a text: as written, as displayed and in full. */
export interface UrlEntity {
  url: string;
  display_url: string;
  expanded_url: string;
  /** start and end in the text, in code points */
  indices: [number, number];
}

/** The mentions, tags and links that the server found in a text. */
export interface StatusEntities {
  mentions: Array<MentionEntity>;
  hashtags: Array<TagEntity>;
  cashtags: Array<TagEntity>;
  urls: Array<UrlEntity>;
}

/** The status that a repost or quote has as its `original`. It does not contain an `original` itself. `edits` counts the edits, and `edited` is the time of the last. A status that was never edited has neither. */
export interface EmbeddedStatus {
  /** a decimal number */
  id: string;
  /** the author, whose login is `login` */
  uid: string;
  /** 1 to 20 letters, digits or _ */
  login: string;
  message: string;
  /** ISO 8601 in UTC, with milliseconds */
  posted: string;
  edits?: number;
  /** ISO 8601 in UTC, with milliseconds */
  edited?: string;
  location: Location | null;
  place: Place | null;
  /** a BCP 47 language tag, or `und` if the language is unknown */
  lang: string;
  entities: StatusEntities;
  /** a decimal number */
  in_reply_to: string | null;
  /** a decimal number */
  in_reply_to_uid: string | null;
  /** the status that this one reposts or quotes */
  origin: string | null;
  media: Array<Media>;
  meta: Record<string, unknown> | null;
  /** a decimal number */
  group: string | null;
  /** the first status of the thread */
  conversation: string;
  likes: number;
  comments: number;
  reposts: number;
  /** only of a status of another site */
  foreign_id?: string;
}

/** A status. `original` is the reposted or quoted status, or null if that is deleted or hidden from the caller. */
export interface Status extends EmbeddedStatus {
  original?: EmbeddedStatus | null;
}

/** The rest of a deleted object: its id, and the id of its author or owner. */
export interface Ids {
  /** a decimal number */
  id: string;
  /** a decimal number */
  uid: string;
  deleted: true;
}

/** The rest of a deleted comment: its ids, and the id of its status. */
export interface DeletedComment extends Ids {
  /** a decimal number */
  status: string;
}

/** The rest of a user whose account is deleted: its id, and the id that another site gave the user. */
export interface DeletedUser {
  /** a decimal number */
  id: string;
  /** only of a user of another site */
  foreign_id?: string;
  deleted: boolean;
}

/** A user, with the members that everybody may see. */
export interface User {
  /** a decimal number */
  id: string;
  /** 1 to 20 letters, digits or _ */
  login: string;
  name: string;
  bio: string | null;
  url: string | null;
  place: string | null;
  lang: string | null;
  protected: boolean;
  followers: number;
  following: number;
  posts: number;
  /** ISO 8601 in UTC, with milliseconds */
  signup: string;
  /** only of a user of another site */
  foreign_id?: string;
}

/** The caller's own user, with the e-mail address, which is null for an account created without one. */
export interface OwnUser extends User {
  email: string | null;
}

/** A user on a page of users. `since` is the time of the relation, such as when the user began to follow. */
export interface ListedUser extends User {
  /** omitted if the list does not record it */
  since?: string;
}

/** A comment under a status. `uid` and `login` are of the commenter. */
export interface Comment {
  /** a decimal number */
  id: string;
  /** a decimal number */
  uid: string;
  /** 1 to 20 letters, digits or _ */
  login: string;
  /** a decimal number */
  status: string;
  message: string;
  /** ISO 8601 in UTC, with milliseconds */
  posted: string;
  entities: StatusEntities;
}

/** A list of users. It has at most 5,000 members. */
export interface List {
  /** a decimal number */
  id: string;
  /** the owner */
  uid: string;
  name: string;
  description: string;
  private: boolean;
  members: number;
  /** ISO 8601 in UTC, with milliseconds */
  created: string;
}

/** A group of users who post among themselves. It has at most 5,000 members, including its owner. */
export interface Group {
  /** a decimal number */
  id: string;
  /** the owner */
  uid: string;
  name: string;
  /** public: everybody may read and join; private: only members see it, and the owner adds them; announcement: like public, but only the owner posts */
  kind: "public" | "private" | "announcement";
  description: string;
  members: number;
  /** ISO 8601 in UTC, with milliseconds */
  created: string;
}

/** A message in a talk. Only the users in the talk see it. `uid` and `login` are of the sender. */
export interface TalkMessage {
  /** a decimal number */
  id: string;
  /** a decimal number */
  talk: string;
  /** a decimal number */
  uid: string;
  /** 1 to 20 letters, digits or _ */
  login: string;
  message: string;
  /** ISO 8601 in UTC, with milliseconds */
  posted: string;
}

/** A private conversation. `last_message` is omitted if the talk has no message that the caller can see. */
export interface Talk {
  /** a decimal number */
  id: string;
  /** all users in the talk, first the one who opened it */
  people: Array<string>;
  name: string | null;
  /** ISO 8601 in UTC, with milliseconds */
  created: string;
  /** messages behind the read mark, to 100 */
  unread: number;
  last_message?: TalkMessage;
}

/** An act of another user that concerns the caller, with the status or comment that it created or liked. */
export interface Notification {
  /** a decimal number */
  id: string;
  kind: "mention" | "reply" | "like" | "comment" | "repost" | "quote" | "follow" | "request" | "approve";
  /** the user who acted */
  source: User;
  /** ISO 8601 in UTC, with milliseconds */
  posted: string;
  read: boolean;
  status?: Status;
  comment?: Comment;
}

/** A rule in canonical form. The answer to a dry run has no `id` and `created`, because nothing was saved. */
export interface RuleAnswer {
  rule: string;
  /** empty if the rule has no tag */
  tag: string;
  /** a decimal number */
  id?: string;
  /** ISO 8601 in UTC, with milliseconds */
  created?: string;
}

/** A part of a rule: whether it matches a status, and why. A part that contains further parts has `parts`. */
export interface ExplainedPart {
  text: string;
  /** where it begins in the sent rule, in code points */
  column: number;
  matched: boolean;
  why: string;
  /** where the part was found in the message */
  indices: Array<[number, number]>;
  parts?: Array<ExplainedPart>;
}

/** Whether the rule matches the status, and why. */
export interface RuleExplanation {
  matched: boolean;
  /** the canonical text of the rule */
  rule: string;
  parts: ExplainedPart;
}

/** A part of the rule that matches the status, and where the server found the part in the message. */
export interface MatchedPart {
  part: string;
  indices: Array<[number, number]>;
}

/** A status that the rule matches, the parts of the rule that match it, and the cursor behind it on the log. */
export interface PreviewExample {
  status: Status;
  parts: Array<MatchedPart>;
  cursor: string;
}

/** The number of statuses that the caller may see and that match a rule, from the time `from` to the time `to`. `complete` means that the server scanned the whole requested time. `examples` has the latest ten matches. */
export interface RulePreviewResult {
  matched: number;
  /** entries of the log, of any kind */
  scanned: number;
  /** ISO 8601 in UTC, with milliseconds */
  from: string;
  /** ISO 8601 in UTC, with milliseconds */
  to: string;
  complete: boolean;
  per_minute: number;
  examples: Array<PreviewExample>;
}

/** Whether the caller follows the user. `requested`: a protected user has not answered the caller's request. */
export interface FollowState {
  following: boolean;
  requested: boolean;
}

/** The answer to a like or unlike: whether the caller likes the status now, and how many users like it. */
export interface LikeCount {
  liked: boolean;
  likes: number;
}

/** How many events one rule matched. `id` is that of a saved rule, or `r1` for the first rule of a request. */
export interface RuleCount {
  id: string;
  tag: string;
  count: number;
}

/** The number of statuses from the time `from` on and before the time `to`, and how many each rule matched. `complete` is false if the log no longer has all events of this time. `counts` leaves out rules without a match. */
export interface CountBucket {
  /** ISO 8601 in UTC, with milliseconds */
  from: string;
  /** ISO 8601 in UTC, with milliseconds */
  to: string;
  complete: boolean;
  count: number;
  counts: Array<RuleCount>;
}

/** A page of counts, the newest bucket first. If `next` is not null, send the same request with it: the next page goes on with the bucket before. */
export interface RuleCounts {
  /** ISO 8601 in UTC, with milliseconds */
  from: string;
  /** ISO 8601 in UTC, with milliseconds */
  to: string;
  /** entries of the log, of any kind */
  scanned: number;
  buckets: Array<CountBucket>;
  next: string | null;
}

/** The ids of an edited status that a stream does not show any more. */
export interface LeftStatus {
  /** a decimal number */
  id: string;
  /** a decimal number */
  uid: string;
  /** only of a status of another site */
  foreign_id?: string;
}

/** The outcome of one request to the endpoint of a webhook: the status of the answer, or why there was none. */
export interface SentWebhook {
  /** ISO 8601 in UTC, with milliseconds */
  sent: string;
  /** until the answer, or until it was given up */
  milliseconds: number;
  /** events in the request; 0 in a test */
  events: number;
  status?: number;
  error?: string;
  /** of a shared subscription: the part whose events were sent */
  part?: number;
}

/** Where the server sends the events of a subscription, and how that goes. `failing` deliveries are tried again, `paused` and `disabled` ones not until the next `PUT`. No process of the server has room for `waiting` ones. Of several parts, the one with most failures is shown. */
export interface Webhook {
  url: string;
  /** most events in one request */
  batch: number;
  state: "active" | "disabled" | "failing" | "paused" | "waiting";
  /** failures in a row */
  failures: number;
  /** ISO 8601 in UTC, with milliseconds */
  failing_since?: string;
  /** ISO 8601 in UTC, with milliseconds */
  next_attempt?: string;
  /** of the last 20 requests, newest first */
  outcomes: Array<SentWebhook>;
  /** signs its requests; only in the answer to the PUT that makes the webhook */
  secret?: string;
}

/** The new secret of a webhook. No other answer shows it. */
export interface WebhookSecret {
  secret: string;
}

/** A part of a shared subscription: how far it is handled, and who reads it now: null for nobody. */
export interface SubscriptionPart {
  /** its next reader begins behind this position */
  cursor: string;
  /** entries of the log behind its cursor */
  behind: number;
  behind_seconds: number;
  /** its worker, else the connection; of a webhook the process of the server */
  worker: string | null;
}

/** A named subscription: the parameters of its streams, and the cursor up to which everything is handled. `used` is when it was last put, read or acknowledged. A shared one has `parts`, and the lowest cursor of them. */
export interface Subscription {
  name: string;
  parameters: Record<string, string>;
  /** its next stream begins behind this position */
  cursor: string;
  /** ISO 8601 in UTC, with milliseconds */
  created: string;
  /** ISO 8601 in UTC, with milliseconds */
  used: string;
  /** entries of the log behind its cursor */
  behind: number;
  /** from its cursor to the newest entry */
  behind_seconds: number;
  /** about how long the log still has its next entry; left out if it is not behind, or if the log has no limit that is near */
  kept_seconds?: number;
  /** those of a shared subscription */
  parts?: Array<SubscriptionPart>;
  deliver?: Webhook;
}

/** One error. Programs read `code`, people `message`. `param` names the wrong parameter, member or header. */
export interface ErrorDetail {
  code: "invalid_parameter" | "unknown_parameter" | "missing_parameter" | "conflicting_parameters" | "malformed_body" | "invalid_cursor" | "invalid_token" | "token_expired" | "token_revoked" | "account_deleted" | "insufficient_scope" | "not_yours" | "suspended" | "unanswered" | "wrong_password" | "origin_not_allowed" | "too_late" | "not_found" | "method_not_allowed" | "not_acceptable" | "login_taken" | "email_taken" | "duplicate" | "not_reading" | "too_large" | "too_many" | "unsupported_media_type" | "upgrade_required" | "rate_limited" | "internal" | "unavailable" | "outcome_unknown";
  message: string;
  /** a query parameter, a body member or a header */
  param?: string;
  /** where in a rule, in code points */
  column?: number;
  /** seconds to wait before the next try */
  retry_after?: number;
}

/** A new status: also a reply, a repost or a quote. */
export interface Post extends Placed {
  kind: "post";
  status: Status;
}

/** A status was edited. */
export type Edit = Placed & {
  kind: "edit";
} & (
  | { status: Status; left?: undefined }
  | { left: LeftStatus; status?: undefined }
);

/** A status was deleted. */
export interface Delete extends Placed {
  kind: "delete";
  status: Ids;
}

/** `source` follows `target` now. */
export interface Follow extends Placed {
  kind: "follow";
  source: User;
  target: User;
}

/** `source` no longer follows `target`. */
export interface Unfollow extends Placed {
  kind: "unfollow";
  source: User;
  target: User;
}

/** A like of a status by the user `source`. */
export interface Like extends Placed {
  kind: "like";
  source: User;
  status: Status;
}

/** `source` no longer likes the status. */
export interface Unlike extends Placed {
  kind: "unlike";
  source: User;
  status: Status;
}

/** A user commented on the status. */
export interface Commented extends Placed {
  kind: "comment";
  comment: Comment;
  status: Status;
}

/** A comment was deleted. */
export interface Uncommented extends Placed {
  kind: "uncomment";
  comment: DeletedComment;
  status: Status | Ids;
}

/** A message in one of the caller's talks. */
export interface DirectMessage extends Placed {
  kind: "message";
  message: TalkMessage;
}

/** A notification for the caller. */
export interface Notified extends Placed {
  kind: "notification";
  notification: Notification;
}

/** A user's account was deleted, with all that the user wrote. */
export interface UserDeleted extends Placed {
  kind: "user_delete";
  user: DeletedUser;
}

/** A list of the caller was deleted. */
export interface ListDeleted extends Placed {
  kind: "list_delete";
  list: Ids;
}

/** A group of the caller was deleted. */
export interface GroupDeleted extends Placed {
  kind: "group_delete";
  group: Ids;
}

/** The counts of a stream with `summary`, for one period or a part of it. */
export interface Summary extends Placed {
  kind: "count";
  from: string;
  to: string;
  began: string;
  ended: string;
  count: number;
  counts: Array<RuleCount>;
}

/** The first message of a connection. */
export interface Hello extends Placed {
  kind: "hello";
  connection: string;
  limits: Record<string, unknown>;
  heartbeat_seconds: number;
  server: string;
}

/** Comes every 15 seconds by default. */
export interface Heartbeat extends Placed {
  kind: "heartbeat";
  lag_ms: number;
}

/** Entries that the server cannot deliver. */
export interface Gap extends Placed {
  kind: "gap";
  from: string | null;
  to: string;
  reason: string;
  count: number | null;
}

/** Other filters apply from here on. */
export interface Effective extends Placed {
  kind: "effective";
  added?: Array<string>;
  removed?: Array<string>;
  rules?: number;
  parameters?: string;
  id?: string | number;
}

/** A problem of the stream, such as `falling_behind` with the `percent` of its unsent bytes. */
export interface StreamWarning extends Placed {
  kind: "warning";
  code: string;
  percent?: number;
  filter?: string;
  rule?: string;
  terms?: Array<string>;
  message?: string;
}

/** The end of a connection. */
export interface Goodbye extends Placed {
  kind: "goodbye";
  code: string;
  reason: string;
  retry_after: number | null;
}

/** `source` began or ended a relation to `target`: `block`, `mute`, `request` and their ends. */
export interface Relation extends Placed {
  kind: "request" | "unrequest" | "block" | "unblock" | "mute" | "unmute";
  source: User;
  target: User;
}

/** A user changed the profile (`user_update`) or its visibility (`protect`, `unprotect`). */
export interface UserChange extends Placed {
  kind: "user_update" | "protect" | "unprotect";
  user: User;
}

/** A list of the caller was created or updated, or got or lost the member `user`. */
export interface ListChange extends Placed {
  kind: "list_create" | "list_update" | "list_add" | "list_remove";
  list: List;
  user?: User;
}

/** A group of the caller was created or updated, or `user` joined or left it. */
export interface GroupChange extends Placed {
  kind: "group_create" | "group_update" | "group_join" | "group_leave";
  group: Group;
  user?: User;
}

/** What happened. `kind` tells which it is. */
export type StreamEvent =
  | Post
  | Edit
  | Delete
  | Follow
  | Unfollow
  | Like
  | Unlike
  | Commented
  | Uncommented
  | DirectMessage
  | Notified
  | UserDeleted
  | ListDeleted
  | GroupDeleted
  | Summary
  | Relation
  | UserChange
  | ListChange
  | GroupChange;

/** A message about the stream itself. */
export type Control =
  | Hello
  | Heartbeat
  | Gap
  | Effective
  | StreamWarning
  | Goodbye
  | OperationRefused
  | TokenAccepted;

/** The parameters that select events. */
export interface Filters {
  /** `true`: all public events; the token needs the scope `firehose`. */
  firehose?: true | "true";
  /** User ids, comma-joined. A server also takes logins, and `foreign:` with a user's id of another site. `@me` stands for the users whom you follow. */
  follow?: string | readonly string[];
  /** Kinds of events, comma-joined, of post, edit, delete, follow, unfollow, like, unlike, comment, uncomment, user_update, user_delete, protect, unprotect; `post,delete` if absent. */
  kinds?: string | readonly string[];
  /** BCP 47 tags, comma-joined; `en` matches `en-GB` too, `und` matches an unknown language. */
  language?: string | readonly string[];
  /** Boxes `west,south,east,north` in degrees, comma-joined; west > east crosses the date line. */
  locations?: string | readonly string[];
  /** `k/n`, 1 ≤ k ≤ n ≤ 64: part k of n of the firehose, by author. */
  partition?: string;
  /** A rule, or `tag:rule`; may be repeated, or written as several lines. */
  rule?: string | readonly string[];
  /** `saved`: the rules that you have saved (`/v1/rules`), including later changes. */
  rules?: "saved";
  /** A percentage, 0 < p ≤ 100, of all public statuses; every client gets the same ones. */
  sample?: number | string;
  /** Phrases: a comma is OR, a space is AND; `#x`, `@x`, `$x` match that kind of entity only. */
  track?: string | readonly string[];
}
