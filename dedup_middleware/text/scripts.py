"""Scripts as ranges of characters, for classes of regular expressions; each is written down here and nowhere else."""

#: Thai and Lao.
THAI = "\u0e00-\u0eff"
MYANMAR = "\u1000-\u109f"
KHMER = "\u1780-\u17ff"
KANA = "\u3040-\u30ff"
HANGUL = "\uac00-\ud7af"
#: The basic block: what texts of today are written in.
HAN = "\u4e00-\u9fff"
HAN_EXTENSION_A = "\u3400-\u4dbf"
HAN_COMPATIBILITY = "\uf900-\ufaff"
#: The planes above the basic one.
HAN_RARE = "\U00020000-\U0003ffff"

#: Without spaces between words, and without a dictionary here.
SPACELESS = THAI + MYANMAR + KHMER
#: What a font of its own or a wrong charset hides: private use, and the mark of what cannot be decoded.
UNKNOWN = "\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff"
