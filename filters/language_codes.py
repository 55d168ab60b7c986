"""The codes of languages that have another name, by CLDR and the IANA registry of language subtags.

The data is that of the package ``langcodes`` of the lock file: ``tests/filters/tables.py`` writes it.
"""

_TWO_LETTERS = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en
    eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik in io is it iu iw
    ja ji jv jw ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo mr ms mt
    my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm
    sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""

_RENAMED = """
    aam=aas adp=dz agp=apf ais=ami asd=snz aue=ktz ayx=nun baz=nvo bgm=bcg bic=bir bjd=drl bkb=ebk blg=iba btb=beb
    ccq=rki cjr=mom cka=cmr cmk=xch coy=pij daf=dnj dap=njz dit=dif djl=dze dkl=aqd drh=mn drr=kzk dud=uth duj=dwu
    dwl=dbt elp=amq gav=dev gbc=wny gfx=vaj ggn=gvr ggo=esg ggr=gtu gio=aou gli=kzk gti=nyc guv=duz hrr=jal ibi=opa
    ill=ilm ilw=gal in=id iw=he izi=eza jar=jgk jeg=oyb ji=yi jw=jv kdv=zkd kgc=tdf kgd=ncq kgh=kml koj=kwv kpp=jkm
    krm=bmf ktr=dtp kvs=gdj kwq=yam kxe=tvd kxl=kru kzh=dgl kzj=dtp kzt=dtp leg=enl lii=raq llo=ngt lmm=rmx meg=cir
    mgx=jbk mnt=wnn mo=ro mof=xnt mst=mry mwd=dmw mwj=vaj myd=aog myt=mry nad=xny nbf=nru nbx=ekc ncp=kdz nln=azd
    nlr=nrk nns=nbr nnx=ngv noo=dtd nts=pij nxu=bpp oun=vaj pat=kxr pcr=adx pmc=huw ppa=bfy ppr=lcq pry=prt puz=pub
    rmr=emx sap=aqt sca=hle scc=sr scr=hr sgl=isk skk=oyb sul=sgd sum=ulw tdu=dtp tgg=bjp tgl=fil thc=tpo thw=ola
    thx=oyb tid=itd tie=ras tkk=twm tl=fil tlw=weo tmp=tyj tne=kak tsf=taj unp=wro uok=ema wgw=wgb wit=nol wiw=nwo
    xba=cax xia=acn xkh=waw xrq=dmw xsj=suj ybd=rki yen=ynq yiy=yrm yma=lrr ymt=mtm yos=zom yuu=yug zir=scv
"""

_SHORT = """
    aar=aa abk=ab afr=af aka=ak alb=sq amh=am ara=ar arg=an arm=hy asm=as ava=av ave=ae aym=ay aze=az bak=ba bam=bm
    baq=eu bel=be ben=bn bih=bh bis=bi bod=bo bos=bs bre=br bul=bg bur=my cat=ca ces=cs cha=ch che=ce chi=zh chu=cu
    chv=cv cor=kw cos=co cre=cr cym=cy cze=cs dan=da deu=de div=dv dut=nl dzo=dz ell=el eng=en epo=eo est=et eus=eu
    ewe=ee fao=fo fas=fa fij=fj fin=fi fra=fr fre=fr fry=fy ful=ff geo=ka ger=de gla=gd gle=ga glg=gl glv=gv gre=el
    grn=gn guj=gu hat=ht hau=ha heb=he her=hz hin=hi hmo=ho hrv=hr hun=hu hye=hy ibo=ig ice=is ido=io iii=ii iku=iu
    ile=ie ina=ia ind=id ipk=ik isl=is ita=it jav=jv jpn=ja kal=kl kan=kn kas=ks kat=ka kau=kr kaz=kk khm=km kik=ki
    kin=rw kir=ky kom=kv kon=kg kor=ko kua=kj kur=ku lao=lo lat=la lav=lv lim=li lin=ln lit=lt ltz=lb lub=lu lug=lg
    mac=mk mah=mh mal=ml mao=mi mar=mr may=ms mkd=mk mlg=mg mlt=mt mol=ro mon=mn mri=mi msa=ms mya=my nau=na nav=nv
    nbl=nr nde=nd ndo=ng nep=ne nld=nl nno=nn nob=nb nor=no nya=ny oci=oc oji=oj ori=or orm=om oss=os pan=pa per=fa
    pli=pi pol=pl por=pt pus=ps que=qu roh=rm ron=ro rum=ro run=rn rus=ru sag=sg san=sa sin=si slk=sk slo=sk slv=sl
    sme=se smo=sm sna=sn snd=sd som=so sot=st spa=es sqi=sq srd=sc srp=sr ssw=ss sun=su swa=sw swe=sv tah=ty tam=ta
    tat=tt tel=te tgk=tg tha=th tib=bo tir=ti ton=to tsn=tn tso=ts tuk=tk tur=tr twi=tw uig=ug ukr=uk urd=ur uzb=uz
    ven=ve vie=vi vol=vo wel=cy wln=wa wol=wo xho=xh yid=yi yor=yo zha=za zho=zh zul=zu
"""

_MACRO = """
    aae=sq aao=ar aat=sq abh=ar abv=ar acm=ar acq=ar acw=ar acx=ar acy=ar adf=ar aeb=ar aec=ar afb=ar aii=syr ajp=ar
    ajt=jrb aju=jrb aln=sq als=sq apc=ar apd=ar arb=ar arq=ar ars=ar ary=ar arz=ar auz=ar avl=ar ayc=ay ayh=ar ayl=ar
    ayn=ar ayp=ar ayr=ay azb=az azj=az bbz=ar bcc=bal bcl=bik bdt=gba bgn=bal bgp=bal bgq=raj bhk=bik bhr=mg bjn=ms
    bjq=mg bln=bik bmm=mg bs=sh btj=ms bto=bik bve=ms bvu=ms bxk=luy bxm=bua bxr=bua bxu=bua bzc=mg cdo=zh ciw=oj
    cjy=zh ckb=ku cld=syr cmn=zh cnp=zh cnr=sh coa=ms cpx=zh cqd=hmn cqu=qu crj=cr crk=cr crl=cr crm=cr csp=zh csw=cr
    cts=bik cwd=cr czh=zh czo=zh dgo=doi dhd=mwr dib=din dik=din dip=din diq=zza diw=din dks=din dty=ne dup=ms ebk=bnc
    ekk=et emk=man enb=kln esg=gon esi=ik esk=ik eyo=kln fat=ak fbl=bik ffm=ff fub=ff fuc=ff fue=ff fuf=ff fuh=ff
    fui=ff fuq=ff fuv=ff gan=zh gax=om gaz=om gbo=grb gbp=gba gbq=gba gda=raj gec=grb gju=raj gkp=kpe gmm=gba gno=gon
    gnw=gn gom=kok grj=grb grv=grb gry=grb gso=gba gug=gn gui=gn gun=gn gya=gba hae=om hak=zh hax=hai hdn=hai hea=hmn
    hji=ms hma=hmn hmc=hmn hmd=hmn hme=hmn hmg=hmn hmh=hmn hmi=hmn hmj=hmn hml=hmn hmm=hmn hmp=hmn hmq=hmn hms=hmn
    hmw=hmn hmy=hmn hmz=hmn hnd=lah hnj=hmn hno=lah hoj=raj hr=sh hrm=hmn hsn=zh huj=hmn ida=luy ike=iu ikt=iu jak=ms
    jat=lah jax=ms jye=jrb kby=kr khk=mn kiu=zza kmr=ku knc=kr kng=kg knn=kok koi=kv kpv=kv krt=kr kvb=ms kvr=ms kwy=kg
    kxd=ms lbk=bnc lbl=bik lce=ms lcf=ms ldi=kg liw=ms lkb=luy lko=luy lks=luy lri=luy lrm=luy lsm=luy ltg=lv lto=luy
    lts=luy lvs=lv lwg=luy lzh=zh max=ms meo=ms mfa=ms mfb=ms mhr=chm min=ms mku=man mlq=man mmr=hmn mnk=man mnp=zh
    mqg=ms mrj=chm msc=man msh=mg msi=ms mtr=mwr mui=ms mup=raj muq=hmn mve=mwr mvf=mn mwk=man mww=hmn myq=man nan=zh
    nb=no nhd=gn niq=kln nle=luy nn=no npi=ne nyd=luy obk=bnc ojb=oj ojc=oj ojg=oj ojs=oj ojw=oj oki=kln orc=om orn=ms
    ors=ms ory=or otw=oj pbt=ps pbu=ps pel=ms pes=fa pga=ar phr=lah pko=kln plt=mg pmu=lah pnb=lah prs=fa pse=ms pst=ps
    qub=qu qud=qu quf=qu qug=qu quh=qu quk=qu qul=qu qup=qu qur=qu qus=qu quw=qu qux=qu quy=qu quz=qu qva=qu qvc=qu
    qve=qu qvh=qu qvi=qu qvj=qu qvl=qu qvm=qu qvn=qu qvo=qu qvp=qu qvs=qu qvw=qu qvz=qu qwa=qu qwc=qu qwh=qu qws=qu
    qxa=qu qxc=qu qxh=qu qxl=qu qxn=qu qxo=qu qxp=qu qxr=qu qxt=qu qxu=qu qxw=qu rag=luy rbk=bnc rbl=bik rmc=rom
    rmf=rom rml=rom rmn=rom rmo=rom rmw=rom rmy=rom rwr=mwr scs=den sdc=sc sdh=ku sdn=sc sfm=hmn sgc=kln shu=ar skg=mg
    skr=lah spv=or spy=kln sr=sh src=sc sro=sc ssh=ar swc=sw swh=sw swv=mwr taq=tmh tdx=mg tec=kln thv=tmh thz=tmh
    tkg=mg tmw=ms ttq=tmh tuy=kln tw=ak txy=mg ubl=bik umu=del unm=del urk=ms uzn=uz uzs=uz vbk=bnc vkk=ms vkt=ms
    vro=et wbr=raj wry=mwr wsg=gon wuu=zh xhe=lah xmm=ms xmv=mg xmw=mg xnr=doi xpe=kpe xsl=den ydd=yi yhd=jrb yih=yi
    yud=jrb yue=zh zaa=zap zab=zap zac=zap zad=zap zae=zap zaf=zap zai=zap zam=zap zao=zap zaq=zap zar=zap zas=zap
    zat=zap zav=zap zaw=zap zax=zap zca=zap zch=za zeh=za zgb=za zgm=za zgn=za zhd=za zhn=za zlj=za zlm=ms zln=za
    zlq=za zmi=ms zoo=zap zpa=zap zpb=zap zpc=zap zpd=zap zpe=zap zpf=zap zpg=zap zph=zap zpi=zap zpj=zap zpk=zap
    zpl=zap zpm=zap zpn=zap zpo=zap zpp=zap zpq=zap zpr=zap zps=zap zpt=zap zpu=zap zpv=zap zpw=zap zpx=zap zpy=zap
    zpz=zap zqe=za zsm=ms zsr=zap zte=zap ztg=zap ztl=zap ztm=zap ztn=zap ztp=zap ztq=zap zts=zap ztt=zap ztu=zap
    ztx=zap zty=zap zyb=za zyg=za zyj=za zyn=za zzj=za
"""


def _split_pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


TWO_LETTER_CODES = frozenset(_TWO_LETTERS.split())
"""The registered codes of two letters."""

RENAMED = _split_pairs(_RENAMED)
"""The codes that were replaced, such as ``iw``, and their present code, such as ``he``."""

SHORT_CODES = _split_pairs(_SHORT)
"""The codes of three letters, such as ``eng``, for which BCP 47 (RFC 5646 section 2.2.1) has one of two: ``en``."""

MACRO_LANGUAGES = _split_pairs(_MACRO)
"""The macro-language of each code that belongs to one: ``no`` for ``nb`` and for ``nn``."""

WHOLE_LANGUAGES = frozenset(MACRO_LANGUAGES.values())
"""All macro-languages."""


def present_tag(tag: str) -> str:
    """Return a language tag in lower case with the present code of its language: ``he-il`` for ``iw-IL``."""
    code, hyphen, rest = tag.lower().partition("-")
    return f"{RENAMED.get(code, code)}{hyphen}{rest}"


def is_known(tag: str) -> bool:
    """Return whether the language of a tag is registered.

    Codes of three letters that have no shorter code are accepted.
    """
    code = tag.lower().partition("-")[0]
    return code in TWO_LETTER_CODES if len(code) == 2 else code not in SHORT_CODES


def suggest_tags(tag: str) -> str:
    """Return the tag to write in place of an unknown one, or a sentence with examples. For error messages."""
    short = SHORT_CODES.get(tag.lower().partition("-")[0])
    return short or "a tag such as en, pt-BR or und"
