# 1. Tools; all output files are in a separate directory
export LC_ALL=C
work=$(mktemp -d) ever=999999999999999999 now=$(date +%s%6N) steps=
line() { printf '%-5s  %s\n' "$1" "${2//[^[:print:]]/?}" |
  tee -a "$work/lines"; }
is() { if [ -n "$2" ] && [ "$2" = "$3" ]; then line OK "$1"
  else line WRONG "$1"; fi; }
number() { if [[ $1 =~ ^[0-9]{1,18}$ ]]; then echo "$1"; else echo 0; fi; }
hash() { sha256sum | cut -c1-64; }
all() { cat "$1"/*.gz 2>/dev/null | zcat 2>/dev/null; }
micros() { number "$([ -n "$1" ] && date -u -d "$1" +%s%6N)"; }
date_of() { date -u -d "@${1%??????}" '+%F %T UTC'; }
node() { printf "$(printf '%s\n' "$1" "$2" | sort | tr -d '\n' |
  sed 's/../\\x&/g')" | hash; }
# Runs a command with the roots in $1 (status 0), else with those in $2 (1)
under() {
  "${@:3}" -partial_chain -CAfile "$1" >"$work/why" 2>&1 && return 0
  "${@:3}" -partial_chain -CAfile "$2" >"$work/why" 2>&1 && return 1
  return 2
}
judge() {
  case $1 in
  0) line OK "$2" ;;
  1) line OPEN "$2; but it does not chain to one of your roots" ;;
  *) line WRONG "$2"; sed 's/^/       /' "$work/why" ;;
  esac
}
who() { openssl x509 -in "$1" -noout -subject -issuer -dates -fingerprint \
  -sha256 | sed 's/^/       /'; }
# The positions of the parts of a signature or a token
parts() {
  openssl asn1parse -inform DER -in "$1" | awk -F: '
    /^ *[0-9]+:d=3 / { lists = / cons: cont \[ 1 \]/ }
    /^ *[0-9]+:d=4 / { other = lists && / cons: cont \[ 1 \]/ }
    /^ *[0-9]+:d=4 .* cons: SEQUENCE/ && lists { print "crl", $1 + 0 }
    /^ *[0-9]+:d=5 .* cons: SEQUENCE/ && other { print "ocsp", $1 + 0 }
    /^ *[0-9]+:d=5 .* prim: OCTET STRING/ { print "value", $1 + 0 }
    /^ *[0-9]+:d=7 .*:id-smime-aa-timeStampToken$/ { n = NR }
    n && NR == n + 2 { print "stamp", $1 + 0 }'
}
inside() {
  openssl cms -verify -noverify -binary -inform DER -in "$1" "${@:3}" \
    -certsout "$2.certs" -signer "$2.signer" -out /dev/null 2>/dev/null
}
# The digest or the time in a token
info() {
  openssl cms -verify -noverify -binary -inform DER -in "$1" 2>/dev/null |
    openssl asn1parse -inform DER 2>/dev/null | awk -v kind="$2" -F: '
    kind == "digest" && /d=2 .*OCTET STRING/ { print tolower($NF); exit }
    kind == "time" && /d=1 .*GENERALIZEDTIME/ { print $NF; exit }'
}
given() {
  micros "$(info "$1" time |
    sed 's/^\(....\)\(..\)\(..\)\(..\)\(..\)\(.*\)Z$/\1-\2-\3 \4:\5:\6Z/')"
}
ends() { micros "$(openssl x509 -in "$1" -noout -enddate | cut -d= -f2)"; }
# Is the token $1 valid for the digest $2 at the time $3? $4: certificates
covers() {
  local how
  if openssl ts -reply -token_in -in "$1" >/dev/null 2>&1; then
    how=(openssl ts -verify -token_in -digest "$2" -untrusted "$4")
  else # openssl ts cannot read all of the contents
    [ "$2" = "$(info "$1" digest)" ] ||
      { echo "the token is for another digest" >"$work/why"; return 2; }
    how=(openssl cms -verify -cades -binary -inform DER -purpose timestampsign
      -certfile "$4" -out /dev/null)
  fi
  under ../trust-timestamps.pem "$4" "${how[@]}" -in "$1" \
    -attime "${3%??????}" -auth_level 2
}
# Is a certificate a root?
own() { [ "$(openssl x509 -in "$1" -noout -subject_hash -issuer_hash |
  uniq | wc -l)" = 1 ]; }
# The certificate $1 and its issuers in $2 up to a root, one file per line
path() {
  local pool known
  pool=$work/pool-$(hash <"$2")
  [ -d "$pool" ] || { mkdir "$pool"; awk -v to="$pool/" '
    /BEGIN CERT/ { n++; on = 1 }
    on { print >(to n ".pem") }
    /END CERT/ { on = 0 }' "$2"; }
  known=$pool/of-$(hash <"$1")
  [ -f "$known" ] || { cp "$1" "$known.is"
    climb "$known.is" "$pool" >"$known"; }
  cat "$known"
}
climb() {
  local file above at=$1 n
  for n in 1 2 3 4 5 6 7 8; do
    echo "$at"
    own "$at" && return
    above=
    for file in "$2"/*.pem; do
      cmp -s "$file" "$at" || { openssl verify -partial_chain \
        -no_check_time -trusted "$file" "$at" >/dev/null 2>&1 &&
        { own "$file" || [ -z "$above" ]; } && above=$file; }
    done
    [ -n "$above" ] || return
    at=$above
  done
}
# Does a revocation at $3 for the reason $4 count at $1? A later one counts until
# $2, unless its reason leaves earlier signatures valid
counts() {
  (($3 <= $1)) || { (($3 <= $2)) &&
    case $(tr -cd A-Za-z <<<"$4" | tr A-Z a-z) in
    unspecified | affiliationchanged | superseded | cessationofoperation)
      false ;; esac; }
}
# The status of a certificate in a CRL or OCSP response: good, revoked or none.
# FILE CERTIFICATE ISSUER AS-OF UNTIL DIRECTORY-OF-LISTS
list() {
  local from at=$4 said found when past
  from=$(micros "$(openssl crl -in "$1" -noout -lastupdate | cut -d= -f2)")
  ((from > at)) && at=$from
  said=$(openssl verify -partial_chain -auth_level 2 -trusted "$3" \
    -crl_check -CRLfile "$1" -attime "${at%??????}" "$2" 2>&1) &&
    { echo good; return; }
  grep -q '^error 23 ' <<<"$said" || return
  mapfile -t found < <(openssl crl -in "$1" -noout -text | awk -v of="$(
    openssl x509 -in "$2" -noout -serial | cut -d= -f2)" '
    / Serial Number: / { on = $3 == of }
    on && was ~ /Reason Code/ { why = $0 }
    on && was ~ /Invalidity Date/ { past = $0 }
    { was = $0 }
    on && sub(/.*Revocation Date: /, "") { when = $0 }
    END { print when; print past; print why }')
  when=$(micros "${found[0]}") past=$(micros "${found[1]}")
  ((past > 0 && past < when)) && when=$past
  if counts "$4" "$5" "$when" "${found[2]}"; then echo revoked
  elif [ "$(grep -c '^error [0-9]' <<<"$said")" = 1 ]; then echo good; fi
}
answer() {
  local kind said from to of file ask
  field() { sed -n "s/^\t$1: //p" <<<"$said" | head -n 1; }
  ask=(openssl ocsp -validity_period 3000000000 -respin "$1")
  for kind in sha1 sha256 sha384 sha512; do
    said=$("${ask[@]}" -$kind -issuer "$3" -cert "$2" -noverify 2>&1)
    grep -qE '^\S+: (good|revoked)$' <<<"$said" && break
  done
  from=$(micros "$(field 'This Update')") to=$(micros "$(field 'Next Update')")
  said=$("${ask[@]}" -$kind -issuer "$3" -cert "$2" -CAfile "$3" \
    -partial_chain -attime "${from%??????}" -resp_text 2>&1)
  grep -q '^Response verify OK' <<<"$said" || return
  if grep -q 'OCSP Signing' <<<"$said" && ! grep -q 'OCSP No Check' <<<"$said"
  then
    of=$work/responder.pem
    sed '/END CERT/q' <<<"$said" | sed -n '/BEGIN CERT/,$p' >"$of"
    for file in "$6"/*.crl; do
      [ -f "$file" ] && list "$file" "$of" "${@:3:3}"
    done | sort | tail -n 1 | grep -q good || return
  fi
  if grep -qE '^\S+: revoked$' <<<"$said"; then
    counts "$4" "$5" "$(micros "$(field 'Revocation Time')")" \
      "$(field Reason)" && { echo revoked; return; }
  fi
  ((from <= $(ends "$2") && (from >= $4 || to >= $4))) && echo good
}
# The status of the path from the certificate $1 to a root: good, revoked or
# open at $3 and until $4, by the data in the directory $5. $2: certificates
standing() {
  local chain i file one worst=good
  mapfile -t chain < <(path "$1" "$2")
  for ((i = 0; i < ${#chain[@]}; i++)); do
    own "${chain[i]}" && continue
    one=open
    for file in "$5"/*; do
      [ -f "$file" ] && [ -n "${chain[i + 1]}" ] || continue
      case $file in *.crl) kind=list ;; *) kind=answer ;; esac
      case $($kind "$file" "${chain[@]:i:2}" "${@:3:3}") in
      revoked) echo revoked; return ;;
      good) one=good ;;
      esac
    done
    [ "$one" = good ] || worst=open
  done
  echo "$worst"
}
revocation() {
  case $1 in
  good) line OK "$2: not revoked" ;;
  revoked) line WRONG "$2: revoked" ;;
  *) line NOTE "$2: the archive does not prove that it was not revoked" ;;
  esac
}
for tool in openssl jq zcat sha256sum base64 awk sed find od; do
  [ -n "$(command -v $tool)" ] || line WRONG "$tool is missing"
done
# 2. The signer of the list of files, and the latest time of the signature
sig=META-INF/signature001.p7s xml=META-INF/ASiCManifest001.xml
mode=$(jq -r .mode manifest.json)
mkdir "$work/signature"
parts "$sig" >"$work/parts"
while read -r kind at; do
  openssl asn1parse -inform DER -in "$sig" -strparse "$at" -noout \
    -out "$work/part"
  case $kind in
  crl) openssl crl -inform DER -in "$work/part" \
    -out "$work/signature/$at.crl" ;;
  ocsp) mv "$work/part" "$work/signature/$at.ocsp" ;;
  *) mv "$work/part" "$work/$kind" ;;
  esac
done <"$work/parts"
is "signature: there is one" 1 "$(grep -c '^value ' "$work/parts")"
when=$now
if [ "$mode" != test ]; then
  is "signature: it has one timestamp" 1 \
    "$(grep -c '^stamp ' "$work/parts")"
  inside "$work/stamp" "$work/stamp"
  when=$(given "$work/stamp")
  covers "$work/stamp" "$(hash <"$work/value")" "$when" "$work/stamp.certs"
  judge $? "signature: its timestamp is $(date_of "$when"), by:"
  who "$work/stamp.signer"
fi
inside "$sig" "$work/sig" -content "$xml"
under ../trust-signer.pem "$work/sig.certs" openssl cms -verify -cades \
  -binary -inform DER -purpose any -auth_level 2 -attime "${when%??????}" \
  -in "$sig" -content "$xml" -out /dev/null
judge $? "signature: it is valid, by:"
who "$work/sig.signer"
is "signature: the certificate is for signing documents" yes "$(
  openssl x509 -in "$work/sig.signer" -noout \
    -ext basicConstraints,keyUsage,extendedKeyUsage 2>/dev/null | awk '
  BEGIN { good = "yes" } /CA:TRUE/ { good = "" }
  was ~ / Key Usage:/ && !/Digital Signature|Non Repudiation/ { good = "" }
  was ~ / Extended Key Usage:/ && (/Server Auth|Code Sig|Time Stamp|OCSP Sig/ ||
    !/E-mail Protection|Any Extended Key Usage|Document Sign|PDF Sign/ &&
    !/1\.2\.840\.113583\.1\.1\.5|1\.3\.6\.1\.4\.1\.311\.10\.3\.12/ &&
    !/1\.3\.6\.1\.5\.5\.7\.3\.36/) { good = "" }
  { was = $0 } END { print good }')"
if [ "$mode" != test ]; then
  revocation "$(standing "$work/sig.signer" "$work/sig.certs" "$when" \
    "$when" "$work/signature")" "signature: its certificate"
  revocation "$(standing "$work/stamp.signer" "$work/stamp.certs" "$when" \
    $ever "$work/signature")" "signature: the certificate of its timestamp"
  until=$(ends "$work/stamp.signer")
  ((now <= until)) || line NOTE "signature: the certificate of its timestamp\
 expired on $(date_of "$until"); from then on an evidence record must prove\
 that the time was not forged"
fi
steps+=2
# 3. Every file is the signed one, and there are no others
sed -n 's/.*URI="\([^"]*\)"><.*Value>\(.*\)<\/ds:Dig.*/\2 \1/p' "$xml" \
  >"$work/listed"
while read -r digest file; do
  is "file $file" "$digest" "$(openssl dgst -sha256 -binary "$file" | base64)"
done <"$work/listed"
is "files: manifest.json lists the same" \
  "$(sed 1d "$work/listed" | while read -r digest file; do
    echo "$(base64 -d <<<"$digest" | od -An -v -tx1 | tr -d ' \n') $file"
  done)" "$(jq -r '.files[] | "\(.sha256) \(.path)"' manifest.json)"
is "files: there are no others" "$({ printf '%s\n' mimetype "$sig" "$xml"
  cut -d' ' -f2 "$work/listed"; } | sort)" \
  "$(find . ! -type d -printf '%P\0' | tr '\n\0' '?\n' | sort)"
if [ -f signers.p7m ]; then
  inside signers.p7m "$work/list"
  under ../trust-signer.pem "$work/list.certs" openssl cms -verify -cades \
    -binary -inform DER -purpose any -auth_level 2 -attime "${when%??????}" \
    -in signers.p7m -out "$work/list"
  judge $? "signers: the signature of the list is valid, by:"
  who "$work/list.signer"
  is "signers: the signing certificate is listed and in force" 1 "$(jq \
    --arg of "$(openssl x509 -in "$work/sig.signer" -outform DER | hash)" \
    '[.certificates[] | select(.sha256 == $of and .used_until == null)] |
    length' "$work/list")"
fi
steps+=3
# 4. The chain of events
all events >"$work/events"
while IFS= read -r event; do printf %s "$event" | hash; done \
  <"$work/events" >"$work/chain"
jq -r .previous_chain_hash "$work/events" >"$work/previous"
channel=$(jq -r .channel_id manifest.json)
first=$(number "$(jq .frozen_range.first_sequence manifest.json)")
last=$(number "$(jq .frozen_range.last_sequence manifest.json)")
is "events: each contains the hash of the previous one" \
  "$(head -n -1 "$work/chain" | hash)" "$(tail -n +2 "$work/previous" | hash)"
is "events: they begin and end as certified" "$(jq -r '.previous_chain_hash,
  .first_chain_hash, .last_chain_hash' manifest.json)" "$(head -qn 1 \
  "$work/previous" "$work/chain"; tail -n 1 "$work/chain")"
is "events: all from $first to $last" "$(jq -r --argjson a "$first" \
  --argjson b "$last" '.event_count, (range($a; $b + 1) as $n |
  "\($n) \(.channel_id) \(.mode)")' manifest.json | hash)" "$(
  { wc -l <"$work/events"; jq -r '"\(.sequence) \(.channel_id) \(.chain)"' \
    "$work/events"; } | hash)"
is "events: their configurations are those in config/" \
  "$(jq -r '"\(.config_version) \(.config_hash)"' "$work/events" | sort -n |
    uniq)" \
  "$(for file in config/*; do
    echo "$(jq .version "$file") $(hash <"$file")"; done | sort -n)"
jq -r .received_at "$work/events" | sort -c 2>/dev/null
is "events: their times ascend" 0 $?
[ "$first" != 1 ] || is "events: the first one names genesis.json" \
  "$(head -n 1 "$work/previous")" "$(hash <genesis.json)"
steps+=4
# 5. From the events to the roots of the rounds
if [ "$mode" != test ]; then
  { echo "0 $(hash <genesis.json)"
    all leaves | jq -r '"\(.sequence) \(.chain_hash)"'
    echo "$((first - 1)) $(head -n 1 "$work/previous")"
    awk -v n="$first" '{ print n++, $1 }' "$work/chain"; } |
    sort -n | uniq >"$work/leaves"
  is "segments: there is one hash for each event" \
    "$(wc -l <"$work/leaves")" "$(cut -d' ' -f1 "$work/leaves" | uniq | wc -l)"
  leaf() { awk -v n="$1" '$1 == n { print $2 }' "$work/leaves"; }
  before=
  while read -r id root time token; do
    echo "$id $root $time $before"
    before=$(base64 -d <<<"$token" | hash)
  done < <(all rounds | jq -r '.tokens[0].token as $token |
    "\(.round_id) \(.root) \(.gen_time) \($token)"') >"$work/rounds"
  cut -d' ' -f3 "$work/rounds" | sort -c 2>/dev/null
  is "rounds: their times ascend" 0 $?
  root() {
    local level next i
    mapfile -t level
    while ((${#level[@]} > 1)); do
      next=()
      for ((i = 0; i + 1 < ${#level[@]}; i += 2)); do
        next+=("$(node "${level[i]}" "${level[i + 1]}")")
      done
      ((i < ${#level[@]})) && next+=("${level[i]}")
      level=("${next[@]}")
    done
    echo "${level[0]}"
  }
  next= seal= begin=0 to=0
  while IFS= read -r text; do
    read -r id from to rest < <(jq -r '.seal as $seal | [.round_id,
      ($seal | .first_sequence, .last_sequence, .count, .chain, .channel_id,
      .previous_seal_hash, .previous_token_hash, .chain_hash_before,
      .chain_hash_last)] | map(tostring) | join(" ")' <<<"$text")
    from=$(number "$from") to=$(number "$to") what="segment of $from to $to:"
    read -r count chain of link token start end <<<"$rest"
    read -r _ top time before < <(awk -v id="$id" '$1 == id' "$work/rounds")
    [ "$from" != 1 ] || seal=null
    hash_before=$(leaf $((from - 1)))
    is "$what it follows the previous segment and token" \
      "$from $((to - from + 1)) $mode $channel ${seal:-$link} ${before:-$token}\
 ${hash_before:-$start} $(leaf "$to")" \
      "${next:-$from} $count $chain $of $link $token $start $end"
    seal=$(sed 's/.*,"seal":\(.*\)}$/\1/' <<<"$text" | tr -d '\n' | hash)
    found=$({ awk -v a="$from" -v b="$to" '$1 >= a && $1 <= b { print $2 }' \
      "$work/leaves"; echo "$seal"; } | root)
    for sibling in $(jq -r '.path[]' <<<"$text"); do
      found=$(node "$found" "$sibling"); done
    is "$what it is in round $id" "$top" "$found"
    received=$(jq -r --argjson to "$to" 'select(.sequence <= $to).received_at' \
      "$work/events" | tail -n 1)
    is "$what no event was received after that round" 1 \
      $(($(micros "$received") <= $(micros "$time") + 300000000))
    [ "$begin" != 0 ] || begin=$from
    next=$((to + 1))
  done < <(all seals)
  is "segments: they cover all events" 1 \
    $((begin > 0 && begin <= first && to >= last))
fi
steps+=5
# 6. The timestamps of the rounds: their digests and times
if [ "$mode" != test ]; then
  mkdir "$work/objects"
  while read -r kind name der; do
    base64 -d <<<"$der" >"$work/part"
    found=$work/objects/$(hash <"$work/part")
    [ "${found##*/}" = "$name" ] || line WRONG "validation: an object's hash"
    case $kind in
    certificate) openssl x509 -inform DER -in "$work/part" -out "$found.pem" ;;
    crl) openssl crl -inform DER -in "$work/part" -out "$found.crl" ;;
    *) mv "$work/part" "$found.ocsp" ;;
    esac
  done < <(all validation | jq -r '"\(.kind) \(.sha256) \(.der)"')
  words='def words: if length > 0 then join(",") else "-" end;
    def renewed: if . then "\(.stamp) \(.path | words)" else "- -" end;'
  all renewals | jq -r "$words"'"\(.stamp) \(.renewal | renewed) \(.token)"' \
    >"$work/stamps"
  while read -r id root kind time stamp path certificates names token; do
    what="round $id, $kind timestamp:"
    base64 -d <<<"$token" >"$work/token"
    inside "$work/token" "$work/token"
    rm -rf "$work/named"
    mkdir "$work/named"
    for name in ${certificates//[,-]/ } ${names//[,-]/ }; do
      if [ -f "$work/objects/$name.pem" ]; then
        cat "$work/objects/$name.pem" >>"$work/token.certs"
      else cp "$work/objects/$name".[co]* "$work/named" ||
        line WRONG "$what an object to which it refers is missing"; fi
    done
    at=$(given "$work/token")
    covers "$work/token" "$root" "$at" "$work/token.certs"
    judge $? "$what given on $(date_of "$at")"
    difference=$(($(micros "$time") - at))
    is "$what the time in the archive is the same" 0 $((difference / 2))
    mark=$work/known-$(hash <"$work/token.signer")
    [ -f "$mark" ] || { who "$work/token.signer"; touch "$mark"; }
    ended=$(ends "$work/token.signer") until=$ever digest=$root since=$at
    for name in token token.certs; do
      cp "$work/$name" "$work/${name/token/old}"; done
    while [ "$stamp" != - ]; do
      this=$stamp
      read -r _ stamp more new < <(awk -v n="$stamp" '$1 == n' "$work/stamps")
      base64 -d <<<"$new" >"$work/new"
      inside "$work/new" "$work/new"
      later=$(given "$work/new")
      covers "$work/old" "$digest" "$later" "$work/old.certs"
      judge $? "$what valid at the time of the renewal"
      digest=$(hash <"$work/old")
      for name in ${path//[,-]/ }; do digest=$(node "$digest" "$name"); done
      covers "$work/new" "$digest" "$later" "$work/new.certs"
      judge $? "$what renewed on $(date_of "$later")"
      ((later >= since)) ||
        line WRONG "$what the renewal is older than the timestamp"
      if [ "$stamp" != - ] && (($(number "$stamp") <= $(number "$this"))); then
        line WRONG "$what the renewals are not in order"; stamp=-; fi
      [ "$until" != $ever ] || until=$later
      ended=$(ends "$work/new.signer") path=$more stamp=${stamp:--} since=$later
      for name in new new.certs; do
        mv "$work/$name" "$work/${name/new/old}"; done
    done
    echo "$id $(standing "$work/token.signer" "$work/token.certs" "$at" \
      "$until" "$work/named") $ended" >>"$work/tokens"
  done < <(all rounds | jq -r "$words"'.round_id as $id | .root as $root |
    .tokens[] | "\($id) \($root) \(.kind) \(.gen_time) \(.renewal | renewed)" +
    " \(.certificates | words) \(.revocations | words) \(.token)"')
  is "rounds: all timestamps were checked" "$(wc -l <"$work/tokens")" \
    "$(all rounds | jq '.tokens[].kind' | wc -l)"
  all seals | jq -r .round_id >"$work/named-rounds"
  awk -v when="$when" 'NR == FNR { named[$1]; next }
    { tokens[$1]++; n++ }
    $2 == "revoked" { bad[$1]++ }
    $2 == "open" { left++ }
    $2 != "revoked" && $3 > end[$1] { end[$1] = $3 }
    END {
      for (id in tokens)
        if (bad[id] == tokens[id] && id in named)
          print "WRONG round " id ": all timestamps are revoked"
        else if (bad[id]) print "NOTE round " id ": one timestamp is revoked"
        else if (end[id] < when) print "NOTE round " id ": the certificate of" \
          " its timestamp had expired when the archive was signed"
      if (left) print "NOTE rounds: for " left " of " n " timestamps the" \
        " archive does not prove that their certificates were not revoked"
    }' "$work/named-rounds" "$work/tokens" |
    while read -r kind text; do line "$kind" "$text"; done
fi
steps+=6
# 7. The verdict: the last line
count() { grep -c "^$1 " "$work/lines"; }
said="$(count OK) OK, $(count OPEN) OPEN, $(count NOTE) NOTE,"
said+=" $(count WRONG) WRONG"
if [ "$(count WRONG)" != 0 ] || [ "$(count OK)" -lt 12 ] ||
  [ $steps != 23456 ]; then
  echo "NOT VALID - NO VÁLIDO: $said"; verdict=1
elif [ "$(count OPEN)" != 0 ]; then
  echo "INTACT, BY WHOM IS NOT ESTABLISHED -" \
    "ÍNTEGRO, DE QUIÉN NO CONSTA: $said"; verdict=2
elif [ "$mode" = test ]; then
  echo "TEST, WITHOUT PROBATIVE VALUE -" \
    "DE PRUEBA, SIN VALOR PROBATORIO: $said"; verdict=0
else echo "VALID - VÁLIDO: $said"; verdict=0; fi
rm -rf "$work"
(exit $verdict)
# End
